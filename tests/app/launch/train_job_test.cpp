// Tests whole training jobs under mpirun: results that must not depend on the number of ranks, and
// the messages of jobs that fail. `convoy data synth` makes the data.
#include "tests/app/launch/train_job.h"

#include <algorithm>
#include <cmath>

namespace convoy::test {
namespace {

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

TEST_F(TrainJob, ResumingKnowsWhatItGoesOnFrom) {
  const std::string flags = "--steps 24 --checkpoint-every-epochs 0 --eval-every 1";
  ASSERT_EQ(run(command(1, train("done", flags))).status, 0);
  const std::string results = summary("done").dump();
  // The run is complete, and the job is started again, as Slurm may do. It must keep the results,
  // because a run without steps has no loss.
  const Outcome again = run(command(1, train("done", flags + " --resume")));
  EXPECT_EQ(again.status, 0) << again.text;
  EXPECT_EQ(summary("done").dump(), results);
  fs::remove(fs::path(out("done")) / "summary.json");
  EXPECT_EQ(run(command(1, train("done", flags + " --resume"))).status, 0);
  EXPECT_EQ(summary("done")["parameters_sha256"], json::parse(results)["parameters_sha256"]);
  EXPECT_EQ(summary("done")["test_accuracy"], json::parse(results)["test_accuracy"]);

  const Outcome shorter = run(command(1, train("done", "--steps 20 --resume")));
  EXPECT_EQ(shorter.status, 2) << shorter.text;
  const Outcome fewer = run(command(1, train("done", "--steps 30 --limit-test 10 --resume")));
  EXPECT_EQ(fewer.status, 0) << fewer.text;
  const Outcome drawn = run(std::string(CONVOY_PROGRAM) + " data synth " + out("others.h5") +
                            " --classes 10 --size 32 --train 600 --test 90 --seed 4");
  ASSERT_EQ(drawn.status, 0) << drawn.text;
  std::string on_others = train("done", "--steps 40 --resume");
  on_others.replace(on_others.find(data()), data().size(), out("others.h5"));
  const Outcome others = run(command(2, on_others));
  EXPECT_EQ(others.status, 1) << others.text;
  EXPECT_NE(others.text.find("others.h5: not the images"), std::string::npos) << others.text;
  EXPECT_NE(others.text.find(": found mean "), std::string::npos) << others.text;
}

TEST_F(TrainJob, ASecondRunInTheSameFolderIsRefused) {
  const std::string flags = "--steps 400 --checkpoint-every-steps 5";
  const pid_t first = start_until(command(2, train("shared", flags)), "shared", 6);
  for (const char* more : {"", " --resume"}) {
    const Outcome second = run(command(2, train("shared", flags + more)));
    EXPECT_EQ(second.status, 1) << second.text;
    ASSERT_EQ(second.ours().size(), 1u) << second.text;
    EXPECT_NE(second.ours()[0].find(out("shared") + ": found another run at work there"), std::string::npos);
  }
  ASSERT_EQ(::waitpid(first, nullptr, WNOHANG), 0) << "the first goes on: " << log("shared");
  const std::size_t steps = losses("shared").size();
  for (const pid_t rank : ranks_of("shared")) ::kill(rank, SIGKILL);
  EXPECT_NE(wait_for(first), 0);
  EXPECT_GE(losses("shared").size(), steps) << "its metrics are not cut";
  const Outcome resumed = run(command(2, train("shared", "--steps 8 --resume --global-batch 52")));
  EXPECT_EQ(resumed.status, 2) << "not refused for the dead run: " << resumed.text;
}

TEST_F(TrainJob, TheBestIsKeptWhenNoCheckpointIsDue) {
  ASSERT_EQ(
      run(command(1, train("best", "--epochs 3 --checkpoint-every-epochs 0 --learning-rate 0.05"))).status,
      0);
  double best = 0;
  for (const json& line : lines("best"))
    if (line.contains("test_top1")) best = std::max(best, line["test_top1"].get<double>());
  for (const char* folder : {"best/checkpoint", "best"}) {
    const Outcome test = run(command(1, "evaluate --json --data " + data() + " --checkpoint " + out(folder)));
    ASSERT_EQ(test.status, 0) << test.text;
    EXPECT_DOUBLE_EQ(json::parse(test.text)["test_accuracy"].get<double>(), best);
  }
}

TEST_F(TrainJob, ADamagedCheckpointIsReportedOnceAndPassedOver) {
  ASSERT_EQ(run(command(2, train("damaged", "--steps 4 --checkpoint-every-steps 2"))).status, 0);
  const std::string before = sha("damaged");
  std::ofstream(fs::path(out("damaged")) / "checkpoint" / "step-00000004.h5") << "cut short";
  const Outcome job = run(command(2, train("damaged", "--steps 4 --checkpoint-every-steps 2 --resume")));
  EXPECT_EQ(job.status, 0) << job.text;
  const std::string warning = "going back to the checkpoint before";
  const auto first = job.text.find(warning);
  ASSERT_NE(first, std::string::npos) << job.text;
  EXPECT_EQ(job.text.find(warning, first + 1), std::string::npos) << job.text;
  EXPECT_EQ(sha("damaged"), before);
}

// An error of one rank must end the job at once, whatever collective the other ranks are in.
TEST_F(TrainJob, OneRanksMistakeIsSaidAtOnce) {
  const std::string wrapper = out("wrapper.sh");
  std::ofstream(wrapper) << "#!/bin/sh\n[ \"$OMPI_COMM_WORLD_RANK\" != 1 ] || set -- \"$@\" --memory-limit "
                            "1MiB\nexec " CONVOY_PROGRAM " \"$@\"\n";
  fs::permissions(wrapper, fs::perms::owner_all);
  const Outcome job = run(std::string(CONVOY_MPIEXEC) + " -np 3 --oversubscribe --bind-to none " + wrapper +
                          " " + train("mistaken", "--steps 3 --timeout 20"));
  EXPECT_EQ(job.status, 1) << job.text;
  ASSERT_EQ(job.ours().size(), 1u) << job.text;
  EXPECT_NE(job.ours()[0].find("--memory-limit"), std::string::npos) << job.text;
}

// These verbs do not use MPI. If mpirun starts two processes, both run the verb and find the same
// error, but only one must print it.
TEST_F(TrainJob, ProcessesWithoutMpiSayOnceWhatTheyAllFind) {
  for (const auto& [verb, status, part] :
       {std::tuple{"bench loader --data none.h5", 1, "none.h5"}, {"info --model resnet19", 2, "resnet19"}}) {
    const Outcome job = run(command(2, verb));
    EXPECT_EQ(job.status, status) << job.text;
    ASSERT_EQ(job.ours().size(), 1u) << job.text;
    EXPECT_NE(job.ours()[0].find(part), std::string::npos) << job.text;
  }
}

TEST_F(TrainJob, AFileSizeLimitIsAnErrorLikeAFullDisk) {
  // 20 MiB are enough for the files that MPI writes, but not for a checkpoint of resnet18.
  const Outcome job =
      run("sh -c 'ulimit -f 40960; exec " +
          command(1, "train --model resnet18_cifar --global-batch 4 --steps 2 --limit-test 4 --data " +
                         data() + " --out " + out("limited")) +
          "'");
  EXPECT_EQ(job.status, 1) << job.text;
  ASSERT_EQ(job.ours().size(), 1u) << job.text;
  EXPECT_NE(job.ours()[0].find("step-00000002.h5"), std::string::npos) << job.text;
  for (const auto& entry : fs::directory_iterator(out("limited/checkpoint"))) ADD_FAILURE() << entry.path();
}

TEST_F(TrainJob, EvaluateRepeatsTheLastTest) {
  const Outcome job = run(command(2, train("tested", "--epochs 1")));
  ASSERT_EQ(job.status, 0) << job.text;
  // On the CPU the arena is in the process's own memory, and nearly all of its pages are used. So
  // the peak of the process must be at least 0.9 times the arena, and not far above it.
  const auto arena = summary("tested")["peak_device_bytes"].get<double>();
  EXPECT_GT(arena, 0);
  EXPECT_GT(summary("tested")["peak_host_bytes"].get<double>(), 0.9 * arena);
  EXPECT_LT(summary("tested")["peak_host_bytes"].get<double>(), arena + (512 << 20));
  const fs::path checkpoint = fs::path(out("tested")) / "checkpoint" / "best.h5";
  for (const int ranks : {1, 2}) {
    const Outcome test = run(command(
        ranks, "evaluate --json --threads 1 --data " + data() + " --checkpoint " + checkpoint.string()));
    ASSERT_EQ(test.status, 0) << test.text;
    EXPECT_DOUBLE_EQ(json::parse(test.text)["test_accuracy"].get<double>(),
                     summary("tested")["test_accuracy"].get<double>());
    EXPECT_EQ(json::parse(test.text)["images"].dump(), "90");
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
  expect(run(command(2, "train --model lenet --size 48 --crop-padding 2 --out " + out("bad") + tail)), 1,
         {"--size", "48", "--crop-padding", "32x32"});
  expect(run(command(2, "train --model lenet --size 28 --cutout 29 --out " + out("bad") + tail)), 1,
         {"--cutout", "29", "28x28"});
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

TEST_F(TrainJob, ABatchLargerThanTheSetIsSaid) {
  const std::string flags =
      "train --model lenet --limit-train 30 --limit-test 8 --epochs 2 --threads 1 --data " + data();
  const Outcome exact = run(command(2, flags + " --global-batch 30 --out " + out("exact")));
  EXPECT_EQ(exact.status, 0) << exact.text;
  EXPECT_TRUE(exact.ours().empty()) << exact.text;
  const Outcome larger = run(command(2, flags + " --global-batch 31 --out " + out("larger")));
  EXPECT_EQ(larger.status, 0) << larger.text;
  ASSERT_EQ(larger.ours().size(), 1u) << larger.text;
  EXPECT_EQ(larger.ours()[0],
            "convoy: warning: --global-batch: found 31, but there are 30 training images; a step sees each "
            "of them once");
  // The losses are equal only up to rounding. A rank's batch now has room for 16 images instead of
  // 15, and kernels of another size may add in another order.
  EXPECT_NEAR(summary("larger")["train_loss"].get<double>(), summary("exact")["train_loss"].get<double>(),
              1e-6);
}

TEST_F(TrainJob, DivergenceStopsWithAMessage) {
  const Outcome job = run(command(2, train("diverged", "--steps 50 --optimizer sgd --learning-rate 1e30")));
  EXPECT_EQ(job.status, 1) << job.text;
  ASSERT_EQ(job.ours().size(), 1u) << job.text;
  EXPECT_NE(job.ours()[0].find("loss"), std::string::npos) << job.text;
}

// Trains on real images. An untrained network has an accuracy of 10 %, and one with wrong gradients
// stays far below the 45 % that are expected.
TEST_F(TrainJob, LearnsOnCifar10) {
  const fs::path archive = fs::path(CONVOY_TEST_DATA) / "cifar10-images.tar.xz";
  if (!fs::exists(archive)) GTEST_SKIP() << "no " << archive << ": configure with -DCONVOY_TEST_DATA=FOLDER";
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
}  // namespace convoy::test
