// Tests bad values of every flag, the checks that compare flags, and the configuration file. A flag
// that is misread would train something else than the user wants.
#include "app/training/train_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/commands/train_flags.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "app/model/zoo/zoo.h"
#include "app/training/resumed_options.h"

namespace convoy::app {
namespace {

using Words = std::vector<std::string>;

TrainOptions parse(Words words) {
  CLI::App app;
  TrainOptions options;
  add_train_flags(app, options);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return options;
}

// Returns the error message of parsing and checking the flags, or an empty text if the flags are
// accepted.
std::string error_of(const Words& words, int ranks = 1) {
  try {
    check_train_options(parse(words), ranks);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

Words with(const Words& more, Words words = {"--model", "lenet", "--data", "d.h5", "--out", "o", "--epochs",
                                             "3", "--global-batch", "64"}) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class ConfigFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".toml");
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string write(const std::string& text) {
    std::ofstream(path_) << text;
    return path_.string();
  }
  void expect_error(const std::string& text, const std::string& message) {
    const auto file = write(text);
    EXPECT_EQ(error_of(with({"--config", file})), file + ": " + message) << text;
  }
  // Compares only the start of the message; the rest is toml++'s and differs between its versions.
  void expect_no_toml(const std::string& text, const std::string& line) {
    const auto file = write(text);
    const std::string expected = file + ": " + line + ", expected TOML (";
    EXPECT_EQ(error_of(with({"--config", file})).substr(0, expected.size()), expected) << text;
  }
  std::filesystem::path path_;
};

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
  EXPECT_EQ(error_of(with({}), 65), "--global-batch: found 64, expected at least the number of ranks, 65");
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

TEST(TrainOptions, JsonHoldsEveryFlag) {
  CLI::App app;
  TrainOptions options;
  add_train_flags(app, options);
  const auto json = to_json(options);
  for (const auto* option : app.get_options()) {
    const auto name = option->get_lnames().at(0);
    const bool of_one_start = name == "help" || name == "config" || name == "resume" || name == "overwrite" ||
                              name == "members" || name == "halving";
    EXPECT_TRUE(of_one_start || json.contains(name)) << name;
  }
}

TEST(TrainOptions, ResumedRunMustBeTheSameRun) {
  const TrainOptions saved = parse(with({}));
  EXPECT_NO_THROW(check_resumed_options(parse(with({"--threads", "3", "--log-every", "7"})), saved));
  for (const Words& change : {Words{"--seed", "9"},
                              {"--momentum", "0.8"},
                              {"--flip"},
                              {"--crop-padding", "4"},
                              {"--color-jitter", "0.4,0.4,0.4,0.1"},
                              {"--auto-augment", "trivial"},
                              {"--random-erasing", "0.1"},
                              {"--mixup", "0.2"},
                              {"--cutmix", "1"},
                              {"--ema", "0.999"},
                              {"--accumulate", "2"}}) {
    EXPECT_THROW(check_resumed_options(parse(with(change)), saved), UsageError) << change[0];
  }
  try {
    check_resumed_options(parse(with({"--learning-rate", "0.3"})), saved);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "--learning-rate: found 0.3, but the run to resume was started with 0.1");
  }
}

// A checkpoint of an older version lacks newer flags. It must be read as if these flags had their
// defaults.
TEST(TrainOptions, AnOlderRunHadTheDefaultsOfNewFlags) {
  auto saved = to_json(parse(with({})));
  for (const char* flag : {"ema", "accumulate", "mixup", "color-jitter"}) saved.erase(flag);
  const TrainOptions older = options_from_json(saved, "c.h5");
  EXPECT_NO_THROW(check_resumed_options(parse(with({})), older));
  EXPECT_THROW(check_resumed_options(parse(with({"--ema", "0.9"})), older), UsageError);
}

// Checkpoints and manifests of released versions hold exactly this text.
TEST(TrainOptions, JsonKeepsItsKeysAndValues) {
  const TrainOptions options = parse({"--model",
                                      "wrn10_1",
                                      "--data",
                                      "d.h5",
                                      "--out",
                                      "o",
                                      "--size",
                                      "32",
                                      "--global-batch",
                                      "32",
                                      "--epochs",
                                      "1",
                                      "--optimizer",
                                      "adamw",
                                      "--schedule",
                                      "one-cycle",
                                      "--one-cycle-anneal",
                                      "linear",
                                      "--auto-augment",
                                      "rand:3:9",
                                      "--scale-learning-rate",
                                      "sqrt",
                                      "--base-batch",
                                      "64",
                                      "--label-smoothing",
                                      "0.1",
                                      "--color-jitter",
                                      "0.4,0.4,0.4,0.1",
                                      "--feed",
                                      "scatter",
                                      "--memory-limit",
                                      "1GiB",
                                      "--clip-gradient-norm",
                                      "1",
                                      "--ema",
                                      "0.9",
                                      "--checkpoint-every-steps",
                                      "7",
                                      "--flip",
                                      "--backend",
                                      "cuda",
                                      "--precision",
                                      "bf16"});
  const std::string text =
      R"({"accumulate":1,"auto-augment":"rand:3:9","backend":"cuda","base-batch":64,"base-width":1,"beta1":0.9,"beta2":0.999,)"
      R"("checkpoint-every-epochs":1,"checkpoint-every-steps":7,"classes":10,"clip-gradient-norm":1.0,)"
      R"("color-jitter":[0.4,0.4,0.4,0.1],"crop-padding":0,"cutmix":0.0,"cutout":0,"data":"d.h5",)"
      R"("data-on-device":false,"drop-path":-1.0,"ema":0.9,"epochs":1,"epsilon":1e-08,"eval-every":1,"feed":"scatter",)"
      R"("final-learning-rate":0.0,"flip":true,"freeze":[],"freeze-batch-norm":false,"gamma":0.1,"global-batch":32,"host-memory":0,"init":"","keep-checkpoints":3,)"
      R"("label-smoothing":0.1,"lanes":"auto","learning-rate":0.1,"limit-test":0,"limit-train":0,"log-every":10,"loss-weights":[],)"
      R"("memory-limit":1073741824,"milestones":[],"mixup":0.0,"model":"wrn10_1","momentum":0.9,)"
      R"("nesterov":false,"one-cycle-anneal":"linear","one-cycle-final-division":10000.0,)"
      R"("one-cycle-initial-division":25.0,"one-cycle-rise":0.3,"optimizer":"adamw","out":"o","parametrisation":"standard","partition":1,)"
      R"("power":1.0,"precision":"bf16","random-erasing":0.0,"random-resized-crop":false,"rate":[],"reinitialise":false,)"
      R"("scale-learning-rate":"sqrt","schedule":"one-cycle","seed":1,"size":32,"steps":0,)"
      R"("stop-on-divergence":true,"sync-batch-norm":true,"test-resize":0,"threads":0,"timeout":300.0,)"
      R"("trace":"","trust-coefficient":0.001,"tuning-file":"","warmup-epochs":0.0,"warmup-steps":0,)"
      R"("weight-decay":0.0})";
  EXPECT_EQ(to_json(options).dump(), text);
  const TrainOptions read = options_from_json(nlohmann::json::parse(text), "c.h5");
  EXPECT_EQ(to_json(read).dump(), text);
  EXPECT_NO_THROW(check_resumed_options(options, read));
}

TEST(TrainOptions, SavedValuesOfAnotherKindAreNamed) {
  const auto error = [](const char* text) -> std::string {
    try {
      options_from_json(nlohmann::json::parse(text), "c.h5");
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(error(R"({"optimizer": "adam"})"),
            "c.h5: option 'optimizer': found \"adam\", expected one of sgd, lars, adamw");
  EXPECT_EQ(error(R"({"ema": "much"})").rfind("c.h5: option 'ema': ", 0), 0u);
  EXPECT_EQ(error(R"({"train-images": 7})"), "") << "keys that are no options are passed over";
}

TEST(TrainOptions, AJumpOfTheRateIsFoundWhateverTheUnit) {
  const auto of_length = [](const Words& length, const Words& schedule) {
    return parse(with(length, with(schedule, {"--model", "lenet", "--data", "d.h5", "--out", "o",
                                              "--global-batch", "64", "--learning-rate", "0.4"})));
  };
  const Words cosine{"--schedule", "cosine"}, steps{"--schedule", "step", "--milestones", "1,2"};
  const auto jump = [&](const Words& from, const Words& to, const Words& schedule, std::int64_t step) {
    return rate_jump(of_length(to, schedule), of_length(from, schedule), step, 10);
  };
  const std::string line = jump({"--epochs", "2"}, {"--steps", "40"}, cosine, 20);
  EXPECT_EQ(
      line.rfind("--steps: the run to resume was to have 20 steps, this one 40, and --schedule cosine", 0),
      0u)
      << line;
  EXPECT_NE(line.find("of the next step is 0.2, that of the last one was 0.00246233"), std::string::npos)
      << line;
  EXPECT_NE(jump({"--epochs", "4"}, {"--epochs", "3"}, cosine, 20), "") << "stopped early and made shorter";
  EXPECT_EQ(jump({"--epochs", "2"}, {"--steps", "20"}, cosine, 10), "") << "the same length in another unit";
  EXPECT_EQ(jump({"--epochs", "2"}, {"--epochs", "4"}, steps, 20), "") << "milestones do not move";
  EXPECT_EQ(jump({"--epochs", "2"}, {"--epochs", "2"}, cosine, 20), "") << "nothing left to do";
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
  EXPECT_EQ(error_of(with({"--accumulate", "4"}), 17),
            "--global-batch: found 16 for a part of --accumulate, expected at least the number of ranks, 17");
  EXPECT_EQ(error_of(with({"--accumulate", "4", "--mixup", "0.2"}), 9),
            "--global-batch: found 16 for a part of --accumulate, expected at least a pair of images to mix "
            "for each rank, twice the number of ranks, 9");
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

// A run must not resume with --steps instead of --epochs: milestones at epochs 1 and 2 would become
// milestones at steps 1 and 2.
TEST(TrainOptions, AResumedRunKeepsTheUnitOfItsMilestones) {
  const Words schedule{"--schedule", "step", "--milestones", "1,2"};
  const auto of_length = [&](const Words& length, bool milestones) {
    return parse(with(milestones ? schedule : Words{}, with(length, {"--model", "lenet", "--data", "d.h5",
                                                                     "--out", "o", "--global-batch", "64"})));
  };
  const auto resumed = [&](const Words& from, const Words& to, bool milestones) -> std::string {
    try {
      check_resumed_options(of_length(to, milestones), of_length(from, milestones));
      return "";
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(resumed({"--epochs", "3"}, {"--steps", "30"}, true),
            "--milestones: with --steps they would be steps, but in the run to resume they are epochs");
  EXPECT_EQ(resumed({"--steps", "30"}, {"--epochs", "3"}, true),
            "--milestones: with --epochs they would be epochs, but in the run to resume they are steps");
  EXPECT_EQ(resumed({"--epochs", "3"}, {"--epochs", "5"}, true), "");
  EXPECT_EQ(resumed({"--epochs", "3"}, {"--steps", "30"}, false), "");
}

TEST_F(ConfigFile, FillsWhatTheCommandLineLeavesOpen) {
  const auto file = write(
      "# a run\n"
      "\n"
      "model = \"resnet18\"   # a model's name\n"
      "data = 'a file, with \"signs\" and a #.h5'\n"
      "learning-rate = 0.4\r\n"
      "schedule=\"step\"\n"
      "milestones = [1,  # over two lines\n"
      "              2.5]\n"
      "nesterov = true\n"
      "sync-batch-norm = false\n"
      "memory-limit = \"2GiB\"\n");
  const auto options = parse({"--model", "lenet", "--config", file, "--learning-rate", "0.3"});
  EXPECT_EQ(options.model, "lenet") << "the command line wins";
  EXPECT_EQ(options.learning_rate, 0.3) << "also after --config";
  EXPECT_EQ(options.data, "a file, with \"signs\" and a #.h5");
  EXPECT_EQ(options.milestones, (std::vector<double>{1, 2.5}));
  EXPECT_TRUE(options.nesterov);
  EXPECT_FALSE(options.sync_batch_norm);
  EXPECT_EQ(options.memory_limit, 2ull << 30);
}

// Every recipe must have all options of a run except data and folder, and only valid ones.
// Otherwise its user would find a typo or an old flag first.
TEST(Recipes, AreCompleteRuns) {
  int recipes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CONVOY_RECIPES)) {
    const std::string file = entry.path().string();
    SCOPED_TRACE(file);
    const Words words{"--config", file, "--data", "d.h5", "--out", "o"};
    EXPECT_EQ(error_of(words, 8), "");
    const TrainOptions options = parse(words);
    const std::int64_t side = options.size > 0 ? options.size : 32,
                       images = options.size > 0 ? 1281167 : 50000;
    EXPECT_NO_THROW(make_schedule(options, images / options.global_batch));
    EXPECT_NO_THROW(make_network(options.model, {1, 3, side, side}, options.size > 0 ? 1000 : 10));
    std::ifstream stream(file);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    for (const char* said : {"--config jobs/recipes/", "# Source: ", "# Expected "})
      EXPECT_NE(text.find(said), std::string::npos) << said;
    EXPECT_NE(text.find(entry.path().filename()), std::string::npos);
    ++recipes;
  }
  EXPECT_EQ(recipes, 5);
}

TEST_F(ConfigFile, AByteOrderMarkIsNoPartOfTheFirstKey) {
  EXPECT_EQ(parse({"--config", write("\xEF\xBB\xBFmodel = \"vgg16\"\ngamma = 0.5\n")}).model, "vgg16");
  expect_error("\xEF\xBB\xBFmodle = \"vgg16\"\n", "unknown key 'modle'; did you mean 'model'?");
}

TEST_F(ConfigFile, FlagOnTheCommandLineDisplacesItsAlternative) {
  const auto file = write("epochs = 15\nwarmup-epochs = 2\n");
  const auto options = parse({"--steps", "10", "--config", file});
  EXPECT_EQ(options.epochs, 0);
  EXPECT_EQ(options.steps, 10);
  EXPECT_EQ(options.warmup_epochs, 2);
}

TEST_F(ConfigFile, UnknownKeys) {
  expect_error("epoch = 3\n", "unknown key 'epoch'; did you mean 'epochs'?");
  expect_error("learning_rate = 3\n", "unknown key 'learning_rate'; did you mean 'learning-rate'?");
  expect_error("config = \"x\"\n", "unknown key 'config'");
  expect_error("help = true\n", "unknown key 'help'");
}

TEST_F(ConfigFile, WrongTypes) {
  expect_error("limit-test = \"many\"\n",
               "key 'limit-test': found 'many', expected a whole number of at least 0");
  expect_error("limit-test = [1, 2]\n", "key 'limit-test': found 2 values, expected one");
  expect_error("limit-test = true\n",
               "key 'limit-test': found 'true', expected a whole number of at least 0");
  expect_error("gamma = \"half\"\n", "key 'gamma': found 'half', expected a number in (0, 1]");
  expect_error("flip = 3\n", "key 'flip': found '3', expected true or false");
  expect_error("flip = \"yes\"\n", "key 'flip': found 'yes', expected true or false");
  expect_error("limit-test = 1.0\n", "key 'limit-test': found '1.0', expected a whole number of at least 0");
  expect_error("milestones = [[1]]\n",
               "key 'milestones': found '[ 1 ]', expected a value or one list of values");
  expect_error("milestones = \"1,,2\"\n", "key 'milestones': found '1,,2', expected a value at every comma");
  expect_error("milestones = [1, \"x\"]\n", "key 'milestones': found 'x', expected a number in (0, 1e9]");
}

TEST_F(ConfigFile, LinesThatAreNotKeysAndValues) {
  expect_error("[train]\nflip = true\n",
               "line 1: found '[train]', expected key = value: tables are not used here");
  expect_error("flip = true\ntrain.flip = true\n",
               "line 2: found 'train.flip = true', expected key = value: tables are not used here");
  expect_no_toml("\nflip\n", "line 2: found 'flip'");
  expect_no_toml("gamma =\n", "line 1: found 'gamma ='");
  expect_no_toml("gamma = # 1\n", "line 1: found 'gamma = # 1'");
  expect_no_toml("limit-test = 1 2\n", "line 1: found 'limit-test = 1 2'");
  expect_no_toml("limit-test = 010\n", "line 1: found 'limit-test = 010'");
  expect_no_toml("milestones = [1,,2]\n", "line 1: found 'milestones = [1,,2]'");
  expect_no_toml("flip = true\nmodel = \"lenet\n", "line 2: found 'model = \"lenet'");
  expect_no_toml("model = 'lenet\"\n", "line 1: found 'model = 'lenet\"'");
  expect_no_toml("gamma = 1\nflip = true\ngamma = 0.5\n", "line 3: found 'gamma = 0.5'");
}

TEST_F(ConfigFile, FileThatCannotBeRead) {
  EXPECT_EQ(error_of(with({"--config", "/no/such.toml"})),
            "/no/such.toml: cannot be read, expected a TOML file");
  EXPECT_EQ(error_of(with({"--config", "/proc"})), "/proc: cannot be read, expected a TOML file");
}

TEST_F(ConfigFile, AlternativesInTheFileAreChecked) {
  const auto file = write("epochs = 15\nsteps = 3\n");
  EXPECT_EQ(error_of({"--model", "m", "--data", "d", "--out", "o", "--global-batch", "8", "--config", file}),
            "--epochs, --steps: found both (15 and 3), expected one");
}

}  // namespace
}  // namespace convoy::app
