// Tests --accumulate and --ema in whole jobs. A step in parts must give the results of a step on
// the whole batch. Averages must be those that the test computes. A resumed run must have the same
// bits.
#include <algorithm>
#include <cmath>

#include "tests/app/launch/edit_store.h"
#include "tests/app/launch/train_job.h"

namespace convoy::test {
namespace {

class TrainAverage : public TrainJob {
 protected:
  // Returns the arguments of a training without batch norm. A batch norm would use the statistics
  // of each part of a step, and so give other results than on the whole batch.
  static std::string plain(const std::string& name, const std::string& flags) {
    return "train --model cifar10_quick --data " + data() +
           " --seed 1 --threads 1 --log-every 1 --learning-rate 0.01 --flip --crop-padding 4 --out " +
           out(name) + " " + flags;
  }
  static std::string checkpoint(const std::string& name, int step) {
    const std::string digits = std::to_string(step);
    return out(name) + "/checkpoint/step-" + std::string(8 - digits.size(), '0') + digits + ".h5";
  }
  static json evaluated(const std::string& flags) {
    const Outcome outcome = run(command(1, "evaluate --json --threads 1 --data " + data() + " " + flags));
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    return json::parse(outcome.text);
  }
  // Expects that the first average is a copy of the values. In each further step, it must move
  // towards the step's values by the share 1 - decay of its difference from them.
  static void expect_averages(const std::string& name, const std::string& kind, const std::string& tensor,
                              int steps, double decay) {
    std::vector<float> expected;
    for (int step = 1; step <= steps; ++step) {
      const std::vector<float> values = read_floats(checkpoint(name, step), kind + "/" + tensor);
      const std::vector<float> found = read_floats(checkpoint(name, step), "averages/" + tensor + ".ema");
      ASSERT_FALSE(values.empty());
      ASSERT_EQ(found.size(), values.size());
      if (step == 1) {
        EXPECT_EQ(found, values) << tensor;
      }
      for (std::size_t i = 0; i < found.size() && step > 1; ++i)
        EXPECT_NEAR(found[i], decay * expected[i] + (1 - decay) * values[i], 1e-6)
            << tensor << ", step " << step;
      if (step == steps) {
        EXPECT_NE(found, values) << tensor << ": nothing moved";
      }
      expected = found;
    }
  }
  // Expects that `name` has the losses of `whole`, up to rounding.
  static void expect_losses(const std::string& name, const std::string& whole) {
    const auto expected = losses(whole), found = losses(name);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 2e-5 * expected[i]) << name << ", step " << i;
  }
};

// An epoch of 600 images has 11 steps of 52 images (four parts of 13), and one of 28 images (parts
// of 13, 13 and 2).
TEST_F(TrainAverage, PartsGiveTheLossesOfTheWholeBatch) {
  ASSERT_EQ(run(command(1, plain("whole", "--global-batch 52 --steps 15"))).status, 0);
  for (const int ranks : {1, 2}) {
    const std::string name = "parts" + std::to_string(ranks);
    const Outcome job = run(command(ranks, plain(name, "--global-batch 52 --accumulate 4 --steps 15")));
    ASSERT_EQ(job.status, 0) << job.text;
    expect_losses(name, "whole");
    const auto one = lines("whole"), more = lines(name);
    for (std::size_t i = 0; i < one.size(); ++i)
      for (const char* key : {"top1", "top5", "test_top1"})
        if (one[i].contains(key)) {
          EXPECT_NEAR(more[i].value(key, -1.0), one[i][key].get<double>(), 0.04) << key;
        }
  }
  EXPECT_LT(summary("parts1")["memory_bytes"]["activations"].get<double>(),
            0.5 * summary("whole")["memory_bytes"]["activations"].get<double>());
}

// The ranks and the parts must mix the same pairs of images, in the same way, as the whole batch.
// An epoch ends with a step of 28 images, in parts of 26 and 2. Two ranks divide 26 images into 14
// and 12, three ranks into 10, 8 and 8.
TEST_F(TrainAverage, PartsAndRanksMixThePairsOfTheWholeBatch) {
  const std::string mixed = "--global-batch 52 --steps 15 --mixup 0.4 --cutmix 1 ";
  ASSERT_EQ(run(command(1, plain("mixed", mixed))).status, 0);
  for (const auto& [ranks, flags] : {std::pair{1, "--accumulate 2"}, {2, ""}, {3, "--accumulate 2"}}) {
    const std::string name = "mixed" + std::to_string(ranks);
    const Outcome job = run(command(ranks, plain(name, mixed + flags)));
    ASSERT_EQ(job.status, 0) << job.text;
    expect_losses(name, "mixed");
  }
}

TEST_F(TrainAverage, PartsAndAveragesResumeInMidEpochToTheBit) {
  const std::string flags =
      "--accumulate 3 --ema 0.9 --steps 14 --checkpoint-every-steps 5 --momentum 0.9 --flip";
  ASSERT_EQ(run(command(2, train("unbroken", flags))).status, 0);
  std::string shorter = flags;
  shorter.replace(shorter.find("14"), 2, "5");
  ASSERT_EQ(run(command(2, train("broken", shorter))).status, 0);
  const Outcome resumed = run(command(2, train("broken", flags + " --resume")));
  ASSERT_EQ(resumed.status, 0) << resumed.text;
  EXPECT_EQ(sha("broken"), sha("unbroken"));
  EXPECT_EQ(losses("broken"), losses("unbroken"));
  for (const char* name : {"averages/conv1.weight.ema", "averages/layer1.0.bn1.running_var.ema"})
    EXPECT_EQ(read_floats(checkpoint("broken", 14), name), read_floats(checkpoint("unbroken", 14), name))
        << name;
  EXPECT_EQ(evaluated("--ema --checkpoint " + checkpoint("broken", 14))["test_loss"],
            evaluated("--ema --checkpoint " + checkpoint("unbroken", 14))["test_loss"]);
  const Outcome other = run(command(1, train("broken", "--accumulate 3 --ema 0.8 --steps 14 --resume")));
  EXPECT_EQ(other.status, 2) << other.text;
}

TEST_F(TrainAverage, AveragesFollowWeightsAndStatistics) {
  const std::string flags =
      "--ema 0.75 --steps 4 --checkpoint-every-steps 1 --keep-checkpoints 9 --learning-rate 0.05 ";
  ASSERT_EQ(run(command(1, train("averaged", flags))).status, 0);
  ASSERT_EQ(run(command(2, train("averaged2", flags + "--partition 2"))).status, 0);
  for (const char* name : {"averaged", "averaged2"}) {
    expect_averages(name, "parameters", "conv1.weight", 4, 0.75);
    expect_averages(name, "statistics", "layer1.0.bn1.running_mean", 4, 0.75);
  }
}

// The test loss must be the plain cross-entropy, even if the training smooths its labels.
TEST_F(TrainAverage, TheAverageIsTestedReportedAndChosen) {
  const Outcome job =
      run(command(2, train("tested", "--ema 0.9 --epochs 3 --learning-rate 0.05 --label-smoothing 0.1")));
  ASSERT_EQ(job.status, 0) << job.text;
  EXPECT_NE(job.text.find("; moving average: loss "), std::string::npos) << job.text;
  double best = 0;
  json last;
  for (const json& line : lines("tested"))
    if (line.contains("ema_test_top1")) {
      best = std::max(best, line["ema_test_top1"].get<double>());
      last = line;
    }
  ASSERT_FALSE(last.is_null());
  EXPECT_EQ(summary("tested")["ema_test_accuracy"], last["ema_test_top1"]);
  EXPECT_EQ(summary("tested")["test_accuracy"], last["test_top1"]);
  EXPECT_NE(last["ema_test_loss"], last["test_loss"]);
  const std::string newest = "--checkpoint " + checkpoint("tested", 36);
  EXPECT_NEAR(evaluated(newest + " --ema")["test_loss"].get<double>(), last["ema_test_loss"].get<double>(),
              1e-6);
  EXPECT_NEAR(evaluated(newest)["test_loss"].get<double>(), last["test_loss"].get<double>(), 1e-6);
  EXPECT_EQ(evaluated("--ema --checkpoint " + out("tested"))["test_accuracy"].get<double>(), best);

  ASSERT_EQ(run(command(1, train("without", "--steps 1", "lenet"))).status, 0);
  const Outcome none = run(command(2, "evaluate --ema --data " + data() + " --checkpoint " + out("without")));
  EXPECT_EQ(none.status, 1) << none.text;
  ASSERT_EQ(none.ours().size(), 1u) << none.text;
  EXPECT_NE(none.ours()[0].find("holds no moving averages, expected a run with --ema"), std::string::npos);
  EXPECT_FALSE(summary("without").contains("ema_test_accuracy"));
}

}  // namespace
}  // namespace convoy::test
