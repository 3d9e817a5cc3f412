// Whole training jobs under mpirun: what must hold whatever the number of ranks, and what a user sees when a job goes
// wrong. The data are drawn by `convoy data synth`.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Outcome {
  int status = -1;
  std::string text;
  std::vector<std::string> ours() const {  // the lines of errors that Convoy itself wrote
    std::vector<std::string> lines;
    for (std::size_t begin = 0; (begin = text.find("convoy: ", begin)) != std::string::npos;) {
      const std::size_t end = text.find('\n', begin);
      lines.push_back(text.substr(begin, end - begin));
      begin = end;
    }
    return lines;
  }
};

Outcome run(const std::string& command) {
  Outcome outcome;
  std::FILE* pipe = ::popen(("timeout 200 " + command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) outcome.text += buffer.data();
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return outcome;
}

class TrainJob : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder() = fs::temp_directory_path() / ("convoy-train-job-" + std::to_string(::getpid()));
    fs::create_directories(folder());
    const Outcome drawn = run(std::string(CONVOY_PROGRAM) + " data synth " + data() +
                              " --classes 10 --size 32 --train 600 --test 90 --seed 3");
    ASSERT_EQ(drawn.status, 0) << drawn.text;
  }
  static void TearDownTestSuite() { fs::remove_all(folder()); }

  static fs::path& folder() {
    static fs::path path;
    return path;
  }
  static std::string data() { return (folder() / "synth.h5").string(); }
  static std::string out(const std::string& name) { return (folder() / name).string(); }

  static std::string command(int ranks, const std::string& verb_and_flags) {
    return std::string(CONVOY_MPIEXEC) + " -np " + std::to_string(ranks) +
           " --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 " + CONVOY_PROGRAM + " " +
           verb_and_flags;
  }
  // A small network with batch norm, a batch that neither 2 nor 4 ranks divide, and a short last one (600 = 11 * 51 + 39).
  static std::string train(const std::string& name, const std::string& flags) {
    return "train --model wrn10_1 --data " + data() +
           " --global-batch 51 --seed 1 "
           "--threads 1 --log-every 1 --out " +
           out(name) + " " + flags;
  }
  static json summary(const std::string& name) {
    return json::parse(std::ifstream(fs::path(out(name)) / "summary.json"));
  }
  static std::string sha(const std::string& name) { return summary(name)["parameters_sha256"]; }
  static std::vector<json> lines(const std::string& name) {
    std::vector<json> all;
    std::ifstream file(fs::path(out(name)) / "metrics.jsonl");
    for (std::string line; std::getline(file, line);)
      if (json object = json::parse(line, nullptr, false); !object.is_discarded())
        all.push_back(std::move(object));
    return all;
  }
  static std::vector<double> losses(const std::string& name) {
    std::vector<double> values;
    for (const json& line : lines(name))
      if (line.contains("loss")) values.push_back(line["loss"]);
    return values;
  }

  // Starts a job and waits until it has logged `step` steps.
  static pid_t start_until(const std::string& job, const std::string& name, std::size_t step) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setpgid(0, 0);
      const std::string line = "exec " + job + " > " + out(name + ".log") + " 2>&1";
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (losses(name).size() < step && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return pid;
  }
  static int wait_for(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  static std::string log(const std::string& name) {
    std::ifstream file(out(name + ".log"));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // The processes of the program whose command line names this job's folder.
  static std::vector<pid_t> ranks_of(const std::string& name) {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string id = entry.path().filename();
      if (id.find_first_not_of("0123456789") != std::string::npos) continue;
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      const std::string line{std::istreambuf_iterator<char>(file), {}};
      if (line.starts_with(CONVOY_PROGRAM) && line.find(out(name)) != std::string::npos)
        found.push_back(std::stoi(id));
    }
    return found;
  }
};

TEST_F(TrainJob, LossesDoNotDependOnTheNumberOfRanks) {
  for (const int ranks : {1, 2, 4}) {
    const std::string name = "ranks" + std::to_string(ranks);
    const Outcome job = run(command(ranks, train(name,
                                                 "--learning-rate 0.002 --momentum 0 --steps 100 --flip "
                                                 "--crop-padding 4 --checkpoint-every-epochs 0")));
    ASSERT_EQ(job.status, 0) << job.text;
    ASSERT_EQ(losses(name).size(), 100u);
  }
  const auto one = losses("ranks1");
  for (const char* name : {"ranks2", "ranks4"}) {
    const auto several = losses(name);
    for (std::size_t step = 0; step < one.size(); ++step)
      EXPECT_LE(std::abs(several[step] - one[step]), 1e-4 * std::abs(one[step])) << name << ", step " << step;
  }
}

TEST_F(TrainJob, SameBitsTwiceAndForBothWaysOfFeeding) {
  for (const char* flags : {"first --feed slice", "again --feed slice", "scattered --feed scatter"}) {
    const std::string text(flags), name = text.substr(0, text.find(' '));
    const Outcome job = run(command(3, train(name, "--steps 15 --flip " + text.substr(text.find(' ')))));
    ASSERT_EQ(job.status, 0) << job.text;
  }
  EXPECT_EQ(sha("first"), sha("again"));
  EXPECT_EQ(sha("first"), sha("scattered"));
  EXPECT_EQ(losses("first"), losses("scattered"));
}

TEST_F(TrainJob, AKilledRankEndsTheJobAndResumingGivesTheSameParameters) {
  const std::string flags = "--steps 60 --checkpoint-every-steps 7 --momentum 0.9 --flip";
  const Outcome whole = run(command(2, train("whole", flags)));
  ASSERT_EQ(whole.status, 0) << whole.text;

  const pid_t job = start_until(command(2, train("killed", flags)), "killed", 20);
  const auto ranks = ranks_of("killed");
  ASSERT_EQ(ranks.size(), 2u);
  const auto killed_at = std::chrono::steady_clock::now();
  ::kill(ranks[1], SIGKILL);
  EXPECT_NE(wait_for(job), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - killed_at, std::chrono::seconds(15));
  EXPECT_NE(log("killed").find("convoy: "), std::string::npos) << log("killed");
  EXPECT_LT(losses("killed").size(), 60u);

  const Outcome resumed = run(command(2, train("killed", flags + " --resume")));
  ASSERT_EQ(resumed.status, 0) << resumed.text;
  EXPECT_NE(resumed.text.find("resumed"), std::string::npos) << resumed.text;
  EXPECT_EQ(sha("killed"), sha("whole"));
  EXPECT_EQ(losses("killed"), losses("whole"));
}

TEST_F(TrainJob, ASignalCheckpointsAndEndsWithSeventyFive) {
  const std::string flags = "--steps 60 --checkpoint-every-epochs 0 --momentum 0.9";
  const Outcome whole = run(command(2, train("unstopped", flags)));
  ASSERT_EQ(whole.status, 0) << whole.text;
  const pid_t job = start_until(command(2, train("stopped", flags)), "stopped", 10);
  for (const pid_t rank : ranks_of("stopped")) ::kill(rank, SIGUSR1);
  EXPECT_EQ(wait_for(job), 75) << log("stopped");
  const Outcome resumed = run(command(2, train("stopped", flags + " --resume")));
  ASSERT_EQ(resumed.status, 0) << resumed.text;
  EXPECT_EQ(sha("stopped"), sha("unstopped"));
}

TEST_F(TrainJob, EvaluateRepeatsTheLastTest) {
  const Outcome job = run(command(2, train("tested", "--epochs 1")));
  ASSERT_EQ(job.status, 0) << job.text;
  const fs::path checkpoint = fs::path(out("tested")) / "checkpoint" / "best.h5";
  for (const int ranks : {1, 2}) {
    const Outcome test = run(command(
        ranks, "evaluate --json --threads 1 --data " + data() + " --checkpoint " + checkpoint.string()));
    ASSERT_EQ(test.status, 0) << test.text;
    EXPECT_DOUBLE_EQ(json::parse(test.text)["test_accuracy"].get<double>(),
                     summary("tested")["test_accuracy"].get<double>());
    EXPECT_EQ(json::parse(test.text)["images"].get<int>(), 90);
  }
}

TEST_F(TrainJob, BadInputIsOneLineThatNamesIt) {
  const std::string wrong_model = "--model resnet19 --out " + out("bad");
  const std::string tail = " --global-batch 8 --steps 1 --threads 1 --data " + data();
  const auto expect = [](const Outcome& outcome, int status, const std::vector<std::string>& parts) {
    EXPECT_EQ(outcome.status, status) << outcome.text;
    ASSERT_EQ(outcome.ours().size(), 1u) << outcome.text;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.ours()[0].find(part), std::string::npos) << outcome.text;
  };
  expect(run(command(2, "train " + wrong_model + tail)), 2, {"resnet19", "resnet18"});
  expect(run(command(2, "train --model lenet --batch-size 3 --out " + out("bad") + tail)), 2,
         {"--batch-size"});
  expect(run(command(
             3, "train --model lenet --out " + out("bad") + " --global-batch 2 --steps 1 --data " + data())),
         2, {"--global-batch", "2", "3"});
  expect(run(command(2, "train --model lenet --out /proc/no/such" + tail)), 1, {"/proc/no/such"});
  expect(run(command(2, "train --model lenet --out " + out("bad") + " --global-batch 8 --steps 1 --data " +
                            out("none.h5"))),
         1, {"none.h5"});
  expect(run(command(2, "train --model lenet --memory-limit 1MiB --out " + out("bad") + tail)), 1,
         {"--memory-limit"});
  expect(run(command(2, "train --model alexnet --out " + out("bad") + tail)), 1, {"alexnet"});

  ASSERT_EQ(run(command(1, "train --model lenet --out " + out("other") + tail)).status, 0);
  expect(run(command(2, "train --model mlp --resume --out " + out("other") + tail)), 2, {"model", "lenet"});
  const Outcome drawn = run(std::string(CONVOY_PROGRAM) + " data synth " + out("four.h5") +
                            " --classes 4 --size 32 --train 40 --test 8 --seed 3");
  ASSERT_EQ(drawn.status, 0) << drawn.text;
  expect(run(command(
             1, "evaluate --data " + out("four.h5") + " --checkpoint " + out("other/checkpoint/best.h5"))),
         1, {"classes"});
}

TEST_F(TrainJob, DivergenceStopsWithAMessage) {
  const Outcome job = run(command(2, train("diverged", "--steps 50 --optimizer sgd --learning-rate 1e30")));
  EXPECT_EQ(job.status, 1) << job.text;
  ASSERT_EQ(job.ours().size(), 1u) << job.text;
  EXPECT_NE(job.ours()[0].find("loss"), std::string::npos) << job.text;
}

// Real images; the bound is far above what an untrained (10 %) or a mis-wired network reaches.
TEST_F(TrainJob, LearnsOnCifar10) {
  const fs::path archive = fs::path(CONVOY_SHARED_DATA) / "cifar10-images.tar.xz";
  if (!fs::exists(archive)) GTEST_SKIP() << archive << " is not there";
  const Outcome converted =
      run(std::string(CONVOY_PROGRAM) + " data convert " + archive.string() + " " + out("cifar.h5"));
  ASSERT_EQ(converted.status, 0) << converted.text;
  const Outcome job =
      run(command(1, "train --model cifar10_quick --data " + out("cifar.h5") + " --out " + out("cifar") +
                         " --limit-train 10000 --limit-test 2000 --epochs 4 --global-batch 50 "
                         "--schedule one-cycle --learning-rate 0.05 --weight-decay 5e-4 --flip --seed 1"));
  ASSERT_EQ(job.status, 0) << job.text;
  EXPECT_GE(summary("cifar")["test_accuracy"].get<double>(), 0.45) << job.text;
}

}  // namespace
