// Tests how options are saved, and which options a resumed run may change.
#include "app/training/resumed_options.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/errors.h"
#include "tests/app/training/parsed_options.h"

namespace convoy::app {
namespace {

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

}  // namespace
}  // namespace convoy::app
