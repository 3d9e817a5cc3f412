// Tests bad values of every flag and the checks that compare flags. A flag that is misread would
// train something else than the user wants.
#include "app/training/train_options.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "app/commands/train_flags.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "tests/app/training/parsed_options.h"

namespace convoy::app {
namespace {

TEST(TrainOptions, DefaultsPassAndFlagsArrive) {
  EXPECT_EQ(error_of(with({})), "");
  const auto options =
      parse(with({"--learning-rate", "0.4", "--schedule", "step", "--milestones", "1,2.5",
                  "--no-sync-batch-norm", "--flip", "--memory-limit", "1.5GiB", "--resume"}));
  EXPECT_EQ(options.learning_rate, 0.4);
  EXPECT_EQ(options.milestones, (std::vector<double>{1, 2.5}));
  EXPECT_FALSE(options.sync_batch_norm);
  EXPECT_TRUE(options.flip && options.resume && options.stop_on_divergence);
  EXPECT_EQ(options.memory_limit, 3ull << 29);
  EXPECT_EQ(error_of(with({"--backend", "cuda", "--lanes", "8"})), "");
  EXPECT_EQ(parse(with({"--backend", "cuda", "--lanes", "8"})).lanes.count, 8);
  EXPECT_EQ(parse(with({})).lanes.text(), "auto");
  EXPECT_EQ(error_of(with({"--backend", "cuda", "--lanes", "9"})),
            "--lanes: found '9', expected auto or a whole number from 1 to 8");
  EXPECT_NE(error_of(with({"--lanes", "3"})), "") << "lanes are a device's";
  EXPECT_EQ(options_from_json({{"lanes", 4}}, "").lanes.count, 4);
  EXPECT_EQ(to_json(parse(with({"--backend", "cuda", "--lanes", "2"}))).at("lanes"), 2);
  EXPECT_EQ(options_from_json(to_json(parse(with({"--backend", "cuda", "--lanes", "2"}))), "").lanes.count,
            2);
}

TEST(TrainOptions, RequiredFlags) {
  EXPECT_EQ(error_of({}), "--model is required: the network's name");
  EXPECT_EQ(error_of({"--model", "m"}), "--data is required: an HDF5 file or 'synthetic'");
  EXPECT_EQ(error_of({"--model", "m", "--data", "d"}),
            "--out is required: the folder for results and checkpoints");
  EXPECT_EQ(error_of({"--model", "m", "--data", "d", "--out", "o"}), "--epochs or --steps is required");
  EXPECT_EQ(error_of({"--model", "m", "--data", "d", "--out", "o", "--steps", "1"}),
            "--global-batch is required: the samples of a step over all ranks");
}

TEST(TrainOptions, EveryNumberRefusesWhatItCannotHold) {
  // A number that is out of range or not written as a whole decimal number must be refused, and not
  // be wrapped around, clamped, truncated or read as octal.
  for (const char* flag : {"--epochs",
                           "--steps",
                           "--global-batch",
                           "--classes",
                           "--size",
                           "--limit-train",
                           "--limit-test",
                           "--crop-padding",
                           "--cutout",
                           "--base-batch",
                           "--warmup-steps",
                           "--threads",
                           "--seed",
                           "--checkpoint-every-epochs",
                           "--checkpoint-every-steps",
                           "--keep-checkpoints",
                           "--log-every",
                           "--eval-every",
                           "--accumulate",
                           "--test-resize"}) {
    for (const char* value : {"-1", "1.5", "010", "0x10", "1e3", "ten", "", "99999999999999999999", "7 "}) {
      const auto message = error_of(with({flag, value}));
      EXPECT_EQ(message.rfind(std::string(flag) + ": ", 0), 0u) << flag << " '" << value << "': " << message;
      EXPECT_NE(message.find("expected a whole number"), std::string::npos) << message;
    }
  }
  for (const char* flag : {"--learning-rate",
                           "--momentum",
                           "--weight-decay",
                           "--beta1",
                           "--beta2",
                           "--epsilon",
                           "--trust-coefficient",
                           "--clip-gradient-norm",
                           "--label-smoothing",
                           "--warmup-epochs",
                           "--gamma",
                           "--final-learning-rate",
                           "--power",
                           "--one-cycle-rise",
                           "--one-cycle-initial-division",
                           "--one-cycle-final-division",
                           "--timeout",
                           "--milestones",
                           "--ema",
                           "--random-erasing",
                           "--mixup",
                           "--cutmix",
                           "--color-jitter"}) {
    for (const char* value : {"-1", "nan", "inf", "fast", "1e999", "0.1x", "0,1x"}) {
      const auto message = error_of(with({flag, value}));
      EXPECT_EQ(message.rfind(std::string(flag) + ": ", 0), 0u) << flag << " '" << value << "': " << message;
      EXPECT_NE(message.find("expected a number in"), std::string::npos) << message;
    }
  }
}

TEST(TrainOptions, RangesAreStated) {
  EXPECT_EQ(error_of(with({"--momentum", "1"})), "--momentum: found '1', expected a number in [0, 1)");
  EXPECT_EQ(error_of(with({"--gamma", "0"})), "--gamma: found '0', expected a number in (0, 1]");
  EXPECT_EQ(error_of(with({"--log-every", "0"})),
            "--log-every: found '0', expected a whole number of at least 1");
  EXPECT_EQ(error_of(with({"--classes", "1"})),
            "--classes: found '1', expected a whole number from 2 to 16777216");
}

TEST(TrainOptions, LossWeightsTrainSomething) {
  EXPECT_EQ(error_of(with({"--loss-weights", "0,0"})),
            "--loss-weights: found only zeros, which train nothing, expected a positive one");
  EXPECT_EQ(error_of(with({"--loss-weights", "0,0.5"})), "");
}

TEST(TrainOptions, ChoicesNameTheNearest) {
  EXPECT_EQ(
      error_of(with({"--schedule", "cosin"})),
      "--schedule: found 'cosin', expected one of constant, step, cosine, polynomial, one-cycle; did you "
      "mean 'cosine'?");
  for (const char* flag :
       {"--optimizer", "--feed", "--backend", "--precision", "--scale-learning-rate", "--one-cycle-anneal"}) {
    EXPECT_EQ(error_of(with({flag, "zzz"})).rfind(std::string(flag) + ": found 'zzz', expected one of ", 0),
              0u);
  }
  for (const char* flag : {"--model", "--data", "--out"}) {
    EXPECT_EQ(error_of({flag, ""}), std::string(flag) + ": found '', expected a text");
  }
}

TEST(TrainOptions, Sizes) {
  EXPECT_EQ(parse_size("8GiB"), 8ull << 30);
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("4096B"), 4096u);
  EXPECT_EQ(parse_size("0.5KiB"), 512u);
  EXPECT_EQ(parse_size("1TiB"), 1ull << 40);
  for (const char* text : {"", "GiB", "8GB", "8 GiB", "8gib", "-8GiB", "8GiBx", "1e3", "0", "0.3B", ".5GiB",
                           "5.", "1.2.3KiB", "9999999999TiB"}) {
    EXPECT_EQ(error_of(with({"--memory-limit", text})).rfind("--memory-limit: found '", 0), 0u) << text;
  }
}

TEST(TrainOptions, ChecksAcrossFlags) {
  EXPECT_EQ(error_of(with({"--steps", "5"})), "--epochs, --steps: found both (3 and 5), expected one");
  EXPECT_EQ(error_of(with({}), 65),
            "--global-batch: found 64, expected at least 65, one image for each rank");
  EXPECT_EQ(error_of(with({}), 64), "");
  EXPECT_EQ(error_of(with({"--warmup-steps", "5", "--warmup-epochs", "1"})),
            "--warmup-epochs, --warmup-steps: found both, expected one");
  EXPECT_EQ(error_of(with({"--drop-path", "-0.5"})),
            "--drop-path: found -0.5, expected a share in [0, 1), or -1");
  EXPECT_EQ(error_of(with({"--drop-path", "-1"})), "");
  EXPECT_EQ(error_of(with({"--schedule", "step"})), "--milestones: --schedule step expects at least one");
  EXPECT_EQ(error_of(with({"--milestones", "2"})),
            "--milestones: belongs to --schedule step, found --schedule constant");
  EXPECT_EQ(error_of(with({"--schedule", "step", "--milestones", "1,3,2"})),
            "--milestones: found 3 before 2, expected ascending numbers");
  EXPECT_EQ(error_of(with({"--random-resized-crop", "--crop-padding", "4"})),
            "--random-resized-crop, --crop-padding: found both, expected one");
  EXPECT_EQ(error_of(with({"--nesterov", "--optimizer", "adamw"})),
            "--nesterov: belongs to --optimizer sgd, found --optimizer adamw");
  for (const auto& [flag, value, line] :
       {std::array{"--beta1", "0.5", "--optimizer adamw, found --optimizer sgd"},
        {"--epsilon", "0.1", "--optimizer adamw or lars, found --optimizer sgd"},
        {"--gamma", "0.5", "--schedule step, found --schedule constant"},
        {"--final-learning-rate", "0.01", "--schedule cosine or polynomial, found --schedule constant"},
        {"--one-cycle-anneal", "linear", "--schedule one-cycle, found --schedule constant"},
        {"--base-batch", "128", "--scale-learning-rate linear or sqrt, found --scale-learning-rate none"},
        {"--tuning-file", "t.json", "--backend cuda, found --backend cpu"},
        {"--lanes", "2", "--backend cuda, found --backend cpu"},
        {"--base-width", "2", "--parametrisation mup, found --parametrisation standard"}})
    EXPECT_EQ(error_of(with({flag, value})), std::string(flag) + ": belongs to " + line);
  EXPECT_EQ(error_of(with({"--trace", testing::TempDir()})),
            "--trace " + testing::TempDir() + ": is a folder, expected the name of a file");
  EXPECT_EQ(error_of(with({"--nesterov", "--momentum", "0"})),
            "--nesterov: found --momentum 0, expected a positive one");
  for (const char* backend : {"reference", "cpu"})
    EXPECT_EQ(error_of(with({"--backend", backend, "--precision", "bf16"})),
              std::string("--precision: found bf16, expected fp32 with --backend ") + backend);
}

TEST(TrainOptions, MupNeedsANetworkWithAWidth) {
  const auto error = [](const Words& more) {
    Words words = with({"--parametrisation", "mup"});
    words.insert(words.end(), more.begin(), more.end());
    words[1] = more.empty() ? "lenet" : "wrn16_4";
    return error_of(words);
  };
  EXPECT_EQ(error({}),
            "--parametrisation: mup needs a network with a width, such as wrn28_10, but found --model lenet");
  EXPECT_EQ(error({"--base-width", "2"}), "");
  EXPECT_EQ(error({"--base-width", "0"}), "--base-width: found '0', expected a whole number from 1 to 1000");
  EXPECT_EQ(error({"--optimizer", "lars"}),
            "--parametrisation: mup has no rule for --optimizer lars, expected sgd or adamw");
}

TEST(TrainOptions, ScheduleIsInStepsWithTheScaledRate) {
  const auto options =
      parse(with({"--schedule", "step", "--milestones", "1,2.5", "--warmup-epochs", "0.5", "--learning-rate",
                  "0.2", "--scale-learning-rate", "linear", "--base-batch", "32", "--gamma", "0.5"}));
  const auto schedule = make_schedule(options, 100);
  EXPECT_EQ(schedule.total_steps, 300);
  EXPECT_EQ(schedule.warmup_steps, 50);
  EXPECT_EQ(schedule.milestones, (std::vector<std::int64_t>{100, 250}));
  EXPECT_DOUBLE_EQ(schedule.learning_rate_at(60), 0.4);
  EXPECT_DOUBLE_EQ(schedule.learning_rate_at(250), 0.1);
}

TEST(TrainOptions, ScheduleOfARunInSteps) {
  Words words{"--model",        "m", "--data",     "d",    "--out",        "o",    "--steps", "70",
              "--global-batch", "8", "--schedule", "step", "--milestones", "40,60"};
  const auto schedule = make_schedule(parse(words), 100);
  EXPECT_EQ(schedule.total_steps, 70);
  EXPECT_EQ(schedule.milestones, (std::vector<std::int64_t>{40, 60}));
}

TEST(TrainOptions, ScheduleMustFitTheRun) {
  EXPECT_THROW(make_schedule(parse(with({"--warmup-steps", "31"})), 10), UsageError);
  EXPECT_NO_THROW(make_schedule(parse(with({"--warmup-steps", "30"})), 10));
  EXPECT_THROW(make_schedule(parse(with({"--final-learning-rate", "0.2"})), 10), UsageError);
}

TEST(TrainOptions, AugmentationAndAccumulationAreChecked) {
  EXPECT_EQ(parse(with({"--color-jitter", "0.4,0.3,0.2,0.1"})).color_jitter,
            (std::vector<double>{0.4, 0.3, 0.2, 0.1}));
  EXPECT_EQ(error_of(with({"--color-jitter", "0.4,0.4"})),
            "--color-jitter: found 2 numbers, expected four: brightness, contrast, saturation, hue");
  EXPECT_EQ(error_of(with({"--color-jitter", "0,0,0,0.6"})),
            "--color-jitter: found a hue of 0.6, expected at most 0.5");
  for (const char* good : {"none", "trivial", "rand", "rand:1:0", "rand:8:30"})
    EXPECT_EQ(error_of(with({"--auto-augment", good})), "") << good;
  for (const char* bad : {"triviaal", "rand:", "rand:2", "rand:0:9", "rand:9:9", "rand:2:31", "rand:2:-1",
                          "rand:2:9x", "rand:2:9:1", "Rand", "rand: 2:9"})
    EXPECT_EQ(error_of(with({"--auto-augment", bad}))
                  .rfind("--auto-augment: found '" + std::string(bad) + "', expected ", 0),
              0u)
        << bad;
  EXPECT_EQ(error_of(with({"--auto-augment", "rand:5:9", "--color-jitter", "0.4,0.4,0.4,0"})), "");
  EXPECT_EQ(error_of(with({"--auto-augment", "rand:5:9", "--color-jitter", "0.4,0.4,0.4,0.1"})),
            "--auto-augment: found 'rand:5:9', expected at most 4 operations with this --color-jitter");
  const auto policy = [](const char* text) { return parse(with({"--auto-augment", text})).auto_augment; };
  EXPECT_EQ(policy("rand").kind, data::AutoAugment::rand);
  EXPECT_EQ(policy("rand").rand(), (RandAugment{2, 9}));
  EXPECT_EQ(policy("rand:3:7").kind, data::AutoAugment::rand);
  EXPECT_EQ(policy("rand:3:7").rand(), (RandAugment{3, 7}));
  EXPECT_EQ(policy("trivial"), (AutoAugmentPolicy{data::AutoAugment::trivial, {}}));
  EXPECT_EQ(error_of(with({"--host-memory", "1GiB"})),
            "--host-memory: expected --memory-limit too, as activations wait there only under a limit");
  EXPECT_EQ(parse(with({"--host-memory", "1.5GiB", "--memory-limit", "1GiB"})).host_memory, 3ll << 29);
  EXPECT_EQ(parse(with({"--host-memory", "0"})).host_memory, 0);
  EXPECT_EQ(parse(with({})).host_memory, 0);
  EXPECT_EQ(error_of(with({"--host-memory", "-1"})).rfind("--host-memory: found '-1'", 0), 0u);
  EXPECT_EQ(error_of(with({"--test-resize", "256"})),
            "--test-resize: expected --size too, the pixels a side that a test cuts from the resized image");
  EXPECT_EQ(error_of(with({"--test-resize", "200", "--size", "224"})),
            "--test-resize: found 200, expected at least --size, 224");
  EXPECT_EQ(error_of(with({"--test-resize", "232", "--size", "224"})), "");
  EXPECT_EQ(error_of(with({"--accumulate", "3"})),
            "--accumulate: found 3, expected a divisor of --global-batch, 64");
  EXPECT_EQ(
      error_of(with({"--accumulate", "4"}), 17),
      "--global-batch: found 16 for a part of --accumulate, expected at least 17, one image for each rank");
  EXPECT_EQ(
      error_of(with({"--accumulate", "4", "--mixup", "0.2"}), 9),
      "--global-batch: found 16 for a part of --accumulate, expected at least 18, a pair of images to mix "
      "for each rank");
  EXPECT_EQ(parse(with({"--mixup", "0.2"})).images_of_replica(3), 22);
  EXPECT_EQ(parse(with({})).images_of_replica(3), 22);
  EXPECT_EQ(parse(with({"--mixup", "0.2"})).images_of_replica(5), 14);
  EXPECT_EQ(error_of(with({"--accumulate", "4", "--cutmix", "1"}), 8), "");
  EXPECT_EQ(error_of(with({"--accumulate", "64", "--cutmix", "1"})),
            "--accumulate: found 64 and so 1 images in a part, expected an even number, since --mixup and "
            "--cutmix mix pairs of images");
  EXPECT_EQ(error_of(with({"--accumulate", "4", "--partition", "2"}), 2),
            "--accumulate cannot be combined with --partition, whose stages hold one batch");
  EXPECT_EQ(error_of(with({"--accumulate", "4", "--trace", "t.json"})),
            "--accumulate cannot be combined with --trace, which shows undivided steps");
  EXPECT_EQ(error_of(with({"--backend", "cuda", "--data-on-device", "--feed", "scatter"}), 2),
            "--data-on-device cannot be combined with --feed scatter on several ranks: every rank reads all "
            "images");
  EXPECT_EQ(error_of(with({"--accumulate", "4"}), 16), "");
  EXPECT_EQ(error_of(with({"--resume", "--overwrite"})), "--resume, --overwrite: found both, expected one");
}

}  // namespace
}  // namespace convoy::app
