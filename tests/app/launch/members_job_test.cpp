// Tests `convoy train --members` in whole jobs. Every member (one of the trainings that run
// together) must end with the bits and the files of a training alone on one rank.
#include <algorithm>
#include <sstream>

#include "tests/app/launch/train_job.h"

namespace convoy::test {
namespace {

class MembersJob : public TrainJob {
 protected:
  static std::string members(const std::string& name, const std::string& spec, const std::string& flags) {
    return train(name,
                 "--limit-train 102 --flip --crop-padding 4 --ema 0.9 --members '" + spec + "' " + flags);
  }
  static std::string alone(const std::string& name, const std::string& flags, const std::string& seed = "1") {
    std::string line = train(name, "--limit-train 102 --flip --crop-padding 4 --ema 0.9 " + flags);
    const std::string first = "--seed 1";
    return line.replace(line.find(first), first.size(), "--seed " + seed);
  }
  static std::string member(const std::string& name, int number) {
    return name + "/members/" + std::to_string(number);
  }
  // Returns the rows of members.csv, each as its fields without quotes.
  static std::vector<std::vector<std::string>> table(const std::string& name) {
    std::vector<std::vector<std::string>> rows;
    std::ifstream file(out(name) + "/members.csv");
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      rows.emplace_back();
      for (std::string field; std::getline(fields, field, ',');) rows.back().push_back(field);
    }
    return rows;
  }
};

// Seven members (trainings that run together) are spread over two ranks: four on one, three on the
// other. Each must end with the bits of a run of its own.
TEST_F(MembersJob, HaveTheBitsOfTrainingsAlone) {
  const Outcome job = run(command(2, members("both", "seed=1..3,8,9,11,12 learning-rate=0.05", "--steps 5")));
  ASSERT_EQ(job.status, 0) << job.text;
  const auto rows = table("both");
  ASSERT_EQ(rows.size(), 8u) << job.text;
  EXPECT_EQ(rows[0].back(), "seed");
  for (const auto& [number, seed] : {std::pair{1, 1}, std::pair{4, 8}, std::pair{5, 9}, std::pair{7, 12}}) {
    const std::string name = "alone" + std::to_string(number);
    const Outcome one = run(command(1, alone(name, "--steps 5 --learning-rate 0.05", std::to_string(seed))));
    ASSERT_EQ(one.status, 0) << one.text;
    EXPECT_EQ(sha(member("both", number)), sha(name)) << "member " << number;
    EXPECT_EQ(losses(member("both", number)), losses(name)) << "member " << number;
    EXPECT_EQ(summary(member("both", number))["test_accuracy"], summary(name)["test_accuracy"]);
    EXPECT_EQ(summary(member("both", number))["ema_test_accuracy"], summary(name)["ema_test_accuracy"]);
    EXPECT_EQ(rows[static_cast<std::size_t>(number)][6], sha(name));
    EXPECT_EQ(rows[static_cast<std::size_t>(number)][1], "finished");
  }
  EXPECT_NE(job.text.find("7 finished: loss "), std::string::npos) << job.text;
}

// The members differ only in their learning rates, so they share batches. They must be able to
// resume on another number of ranks.
TEST_F(MembersJob, GoOnFromTheirCheckpoints) {
  const std::string spec = "learning-rate=0.02,0.05,0.1";
  ASSERT_EQ(run(command(1, members("whole", spec, "--steps 6"))).status, 0);
  ASSERT_EQ(run(command(2, members("parts", spec, "--steps 3"))).status, 0);
  const Outcome rest = run(command(1, members("parts", spec, "--steps 6 --resume")));
  ASSERT_EQ(rest.status, 0) << rest.text;
  for (int number = 1; number <= 3; ++number) {
    EXPECT_EQ(sha(member("parts", number)), sha(member("whole", number))) << number;
    EXPECT_EQ(losses(member("parts", number)), losses(member("whole", number))) << number;
  }
  ASSERT_EQ(run(command(1, alone("third", "--steps 6 --learning-rate 0.1"))).status, 0);
  EXPECT_EQ(sha(member("whole", 3)), sha("third"));
  const Outcome again = run(command(1, members("parts", spec, "--steps 6 --resume")));
  EXPECT_EQ(again.status, 0);
  EXPECT_NE(again.text.find("all steps were done before"), std::string::npos) << again.text;
  const Outcome other = run(command(1, members("parts", "learning-rate=0.02,0.05", "--steps 6 --resume")));
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.text.find("--members: found 2 members, but the run to resume has 3"), std::string::npos)
      << other.text;
}

// One member has a newer checkpoint than the other, as if the process had been killed between two
// saves. Both must resume from the newest step of which both have a checkpoint.
TEST_F(MembersJob, GoBackToTheNewestCommonCheckpoint) {
  const std::string spec = "seed=1,2", every = " --checkpoint-every-steps 2 --eval-every 0";
  ASSERT_EQ(run(command(1, members("later", spec, "--steps 6" + every))).status, 0);
  const std::string expected = sha(member("later", 1));
  fs::remove(out(member("later", 2)) + "/checkpoint/step-00000006.h5");
  fs::remove(out(member("later", 2)) + "/summary.json");
  fs::remove(out("later") + "/members.csv");
  const Outcome rest = run(command(1, members("later", spec, "--steps 6 --resume" + every)));
  ASSERT_EQ(rest.status, 0) << rest.text;
  EXPECT_EQ(sha(member("later", 1)), expected);
  EXPECT_EQ(losses(member("later", 2)).size(), 6u);
}

TEST_F(MembersJob, OneThatDivergesStopsAlone) {
  const Outcome job = run(command(1, members("diverging", "learning-rate=0.05,1e30", "--steps 6")));
  ASSERT_EQ(job.status, 0) << job.text;
  const auto rows = table("diverging");
  EXPECT_EQ(rows.at(2)[1], "diverged");
  EXPECT_FALSE(fs::exists(out(member("diverging", 2)) + "/summary.json"));
  EXPECT_NE(job.text.find("member 2 stops"), std::string::npos) << job.text;
  ASSERT_EQ(run(command(1, alone("steady", "--steps 6 --learning-rate 0.05"))).status, 0);
  EXPECT_EQ(sha(member("diverging", 1)), sha("steady"));
  const Outcome all = run(command(1, members("all", "learning-rate=1e30,1e31", "--steps 6")));
  EXPECT_EQ(all.status, 1);
  EXPECT_NE(all.text.find("all members diverged"), std::string::npos) << all.text;
}

// Four members train in the first epoch, two in the second, and one in the third; an epoch has two
// steps. After each halving the remaining members are spread over the ranks again.
TEST_F(MembersJob, HalvingStopsTheWorseHalf) {
  const Outcome job =
      run(command(2, members("halved", "learning-rate=1e-6,0.05 seed=1,2", "--epochs 3 --halving 1")));
  ASSERT_EQ(job.status, 0) << job.text;
  std::vector<std::string> status;
  double stopped = -1, best = -1;
  int finished = 0;
  for (int number = 1; number <= 4; ++number) {
    const auto row = table("halved").at(static_cast<std::size_t>(number));
    const int steps = std::stoi(row[2]);
    status.push_back(row[1] + " " + row[2]);
    EXPECT_TRUE(fs::exists(out(member("halved", number)) + "/checkpoint/step-0000000" + row[2] + ".h5"));
    EXPECT_EQ(summary(member("halved", number))["steps"], steps);
    EXPECT_EQ(losses(member("halved", number)).size(), static_cast<std::size_t>(steps));
    if (row[1] == "finished") finished = number;
    if (steps == 2) stopped = std::max(stopped, std::stod(row[4]));
  }
  std::ranges::sort(status);
  EXPECT_EQ(status, (std::vector<std::string>{"finished 6", "stopped 2", "stopped 2", "stopped 4"}));
  ASSERT_GT(finished, 0);
  for (const json& line : lines(member("halved", finished)))
    if (line["step"] == 2 && line.contains("ema_test_top1")) best = line["ema_test_top1"];
  EXPECT_GE(best, stopped);
  const std::string rate = finished <= 2 ? "1e-6" : "0.05", seed = finished % 2 == 1 ? "1" : "2";
  ASSERT_EQ(run(command(1, alone("winner", "--epochs 3 --learning-rate " + rate, seed))).status, 0);
  EXPECT_EQ(sha(member("halved", finished)), sha("winner"));
}

TEST_F(MembersJob, ASignalSavesAll) {
  const std::string job = command(2, members("stopped", "seed=1..3", "--steps 4000"));
  fs::create_directories(out(member("stopped", 1)));  // for the job's log
  const pid_t pid = start_until(job, member("stopped", 1), 3);
  ::kill(pid, SIGUSR1);
  EXPECT_EQ(wait_for(pid), 75) << log(member("stopped", 1));
  std::vector<std::string> checkpoints;
  for (int number = 1; number <= 3; ++number) {
    std::string newest;
    for (const auto& entry : fs::directory_iterator(out(member("stopped", number)) + "/checkpoint"))
      if (entry.path().filename().string().starts_with("step-"))
        newest = std::max(newest, entry.path().filename().string());
    checkpoints.push_back(newest);
  }
  EXPECT_FALSE(checkpoints[0].empty());
  EXPECT_EQ(checkpoints[1], checkpoints[0]);
  EXPECT_EQ(checkpoints[2], checkpoints[0]);
}

// In the µP parametrisation, networks have other initial values and learning rates than in the
// standard one. So a run must not resume in the other parametrisation.
TEST_F(MembersJob, MayBeParametrisedByWidth) {
  const auto line = [](const std::string& name, const std::string& flags) {
    return train(name, "--limit-train 51 --steps 2 --parametrisation mup " + flags, "wrn10_2");
  };
  ASSERT_EQ(run(command(1, line("mup", "--members learning-rate=0.05,0.1"))).status, 0);
  const Outcome one = run(command(1, line("mup_alone", "--learning-rate 0.05")));
  ASSERT_EQ(one.status, 0) << one.text;
  EXPECT_NE(one.text.find("mup, relative to width 1"), std::string::npos) << one.text;
  EXPECT_EQ(sha(member("mup", 1)), sha("mup_alone"));
  ASSERT_EQ(run(command(1, line("mup_of_2", "--learning-rate 0.05 --base-width 2"))).status, 0);
  const std::string standard = "--limit-train 51 --steps 2 --learning-rate 0.05";
  ASSERT_EQ(run(command(1, train("standard", standard, "wrn10_2"))).status, 0);
  EXPECT_NE(sha("standard"), sha("mup_alone"));
  EXPECT_EQ(sha("standard"), sha("mup_of_2")) << "of the base width it is the standard one";
  const Outcome other = run(command(1, train("mup_alone", standard + " --resume", "wrn10_2")));
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.text.find("--parametrisation: found \"standard\", but the run to resume was started with "
                            "\"mup\""),
            std::string::npos)
      << other.text;
}

// The members have five shapes: other widths, another network, and steps with other options. Some
// of them share their batches. All must resume on another number of ranks.
TEST_F(MembersJob, MayHaveDifferentShapes) {
  const std::string file = (folder() / "shapes.toml").string();
  std::ofstream(file) << "[[member]]\nwidth = 1\n[[member]]\nmodel = \"mobilenet_v2\"\n"
                         "[[member]]\nwidth = 2\nema = 0\n[[member]]\nwidth = 1\nseed = 2\n"
                         "[[member]]\noptimizer = \"adamw\"\nlearning-rate = 0.01\n"
                         "[[member]]\nmixup = 0.4\n";
  const std::string rate = " --learning-rate 0.05";
  const Outcome first = run(command(2, members("shapes", file, "--steps 3" + rate)));
  ASSERT_EQ(first.status, 0) << first.text;
  EXPECT_NE(first.text.find("6 of 5 shapes over 2 ranks"), std::string::npos) << first.text;
  const Outcome rest = run(command(1, members("shapes", file, "--steps 6 --resume" + rate)));
  ASSERT_EQ(rest.status, 0) << rest.text;
  const auto expect_as_alone = [&](int number, const std::string& flags, const std::string& seed = "1",
                                   const std::string& model = "wrn10_1") {
    const std::string name = "of_shape" + std::to_string(number);
    std::string line = alone(name, "--steps 6 " + flags, seed);
    line.replace(line.find("wrn10_1"), 7, model);
    if (number == 3) line.erase(line.find(" --ema 0.9"), 10);
    const Outcome one = run(command(1, line));
    ASSERT_EQ(one.status, 0) << one.text;
    EXPECT_EQ(sha(member("shapes", number)), sha(name)) << "member " << number;
    EXPECT_EQ(losses(member("shapes", number)), losses(name)) << "member " << number;
    for (const char* key : {"model", "test_accuracy", "ema_test_accuracy"})
      EXPECT_EQ(summary(member("shapes", number))[key], summary(name)[key]) << key << " of " << number;
  };
  expect_as_alone(1, rate);
  expect_as_alone(2, rate, "1", "mobilenet_v2");
  expect_as_alone(3, rate, "1", "wrn10_2");
  expect_as_alone(4, rate, "2");
  expect_as_alone(5, "--optimizer adamw --learning-rate 0.01");
  expect_as_alone(6, rate + " --mixup 0.4");
  EXPECT_EQ(table("shapes").at(3)[1], "finished");
}

// All members of the second shape diverge, so its session stops. The others go on. Halving must
// compare the members of all shapes, and stop the worse half.
TEST_F(MembersJob, OfDifferentShapesDivergeAndAreHalved) {
  const std::string file = (folder() / "diverging.toml").string();
  std::ofstream(file) << "[[member]]\n[[member]]\nwidth = 2\nlearning-rate = 1e30\n"
                         "[[member]]\nwidth = 3\nlearning-rate = 1e-6\n[[member]]\nlearning-rate = 0.02\n";
  const Outcome job = run(command(1, members("mixed", file, "--learning-rate 0.05 --epochs 4 --halving 2")));
  ASSERT_EQ(job.status, 0) << job.text;
  EXPECT_EQ(table("mixed").at(2)[1], "diverged");
  std::vector<std::string> status;
  for (const int number : {1, 3, 4}) {
    const auto row = table("mixed").at(static_cast<std::size_t>(number));
    status.push_back(row[1] + " " + row[2]);
  }
  std::ranges::sort(status);
  EXPECT_EQ(status, (std::vector<std::string>{"finished 8", "finished 8", "stopped 4"}));
  std::string line = alone("wide", "--learning-rate 1e-6 --epochs " + std::string("4"));
  const auto row = table("mixed").at(3);
  if (row[1] == "stopped") line.replace(line.find("--epochs 4"), 10, "--epochs 2");
  ASSERT_EQ(run(command(1, line.replace(line.find("wrn10_1"), 7, "wrn10_3"))).status, 0);
  EXPECT_EQ(sha(member("mixed", 3)), sha("wide"));
}

TEST_F(MembersJob, RefusesWhatDoesNotGoTogether) {
  const auto refuses = [](const std::string& flags, const std::string& message, int status = 2) {
    const Outcome job = run(command(1, members("refused", "seed=1..4", "--steps 2 " + flags)));
    EXPECT_EQ(job.status, status) << job.text;
    EXPECT_NE(job.text.find(message), std::string::npos) << job.text;
  };
  refuses("--feed scatter", "--members cannot be combined with --feed scatter");
  refuses("--memory-limit 6MiB", "members a rank fit", 1);
  const auto refuses_shapes = [](const std::string& limit, const std::string& message) {
    const Outcome job =
        run(command(1, members("refused", "width=1,2,8", "--steps 2 --memory-limit " + limit)));
    EXPECT_EQ(job.status, 1) << job.text;
    EXPECT_NE(job.text.find(message), std::string::npos) << job.text;
  };
  refuses_shapes("60MiB", "but --memory-limit has 60 MiB: 2 members a rank fit");
  refuses_shapes("1MiB", ": 0 members a rank fit");
  const Outcome job = run(command(1, alone("refused", "--steps 2 --halving 1")));
  EXPECT_EQ(job.status, 2);
  EXPECT_NE(job.text.find("--halving: expected --members too"), std::string::npos) << job.text;
}

}  // namespace
}  // namespace convoy::test
