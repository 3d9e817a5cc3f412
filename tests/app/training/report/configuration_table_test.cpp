// Tests that the configuration table shows what the training will do: for example the scaled
// learning rate, and not the value of --learning-rate.
#include "app/training/report/configuration_table.h"

#include <gtest/gtest.h>

#include <map>

namespace convoy::app {
namespace {

std::map<std::string, std::string> rows_of(const TrainOptions& options) {
  std::map<std::string, std::string> rows;
  for (const auto& [name, value] : training_rows(options, 10)) rows[name] = value;
  return rows;
}

TrainOptions twenty_epochs() {
  TrainOptions options;
  options.epochs = 20;
  options.global_batch = 1024;
  return options;
}

TEST(TrainingRows, Defaults) {
  const auto rows = rows_of(twenty_epochs());
  EXPECT_EQ(rows.at("optimizer"), "sgd, momentum 0.9, weight decay 0");
  EXPECT_EQ(rows.at("learning rate"), "0.1, constant");
  EXPECT_EQ(rows.at("parametrisation"), "standard");
  EXPECT_EQ(rows.at("loss"), "cross-entropy");
  EXPECT_EQ(rows.at("moving average"), "none");
  EXPECT_EQ(rows.at("tests"), "every epoch");
  EXPECT_EQ(rows.at("checkpoints"), "every epoch; the newest 3 and the best are kept");
}

TEST(TrainingRows, EveryRuleOfUpdateShowsItsOwnConstants) {
  TrainOptions options = twenty_epochs();
  options.nesterov = true;
  options.weight_decay = 0.0005;
  options.clip_gradient_norm = 2;
  EXPECT_EQ(rows_of(options).at("optimizer"),
            "sgd, Nesterov momentum 0.9, weight decay 0.0005, gradient norm at most 2");
  options = twenty_epochs();
  options.optimizer = kernels::OptimizerKind::lars;
  EXPECT_EQ(rows_of(options).at("optimizer"),
            "lars, momentum 0.9, trust coefficient 0.001, epsilon 1e-08, weight decay 0");
  options.optimizer = kernels::OptimizerKind::adamw;
  EXPECT_EQ(rows_of(options).at("optimizer"), "adamw, betas 0.9 and 0.999, epsilon 1e-08, weight decay 0");
}

TEST(TrainingRows, MupNamesItsBaseWidth) {
  TrainOptions options = twenty_epochs();
  options.parametrisation = Parametrisation::mup;
  options.base_width = 2;
  EXPECT_EQ(rows_of(options).at("parametrisation"), "mup, relative to width 2");
}

TEST(TrainingRows, TheRateIsTheScaledOneAndPositionsAreSteps) {
  TrainOptions options = twenty_epochs();
  options.scale_learning_rate = RateScaling::linear;
  options.warmup_epochs = 2;
  options.schedule = ScheduleKind::cosine;
  EXPECT_EQ(rows_of(options).at("learning rate"),
            "0.4 (0.1 for a batch of 256, linear scaling), cosine to 0, 20 steps of warm-up");
  options = twenty_epochs();
  options.schedule = ScheduleKind::step;
  options.milestones = {10, 15};
  EXPECT_EQ(rows_of(options).at("learning rate"), "0.1, times 0.1 after steps 100, 150");
  options.milestones.clear();
  options.schedule = ScheduleKind::polynomial;
  options.power = 2;
  EXPECT_EQ(rows_of(options).at("learning rate"), "0.1, polynomial of power 2 to 0");
  options.schedule = ScheduleKind::one_cycle;
  EXPECT_EQ(rows_of(options).at("learning rate"),
            "0.1, one-cycle (cosine) with its peak after 30 % of the steps");
}

TEST(TrainingRows, IntervalsAndSmoothing) {
  TrainOptions options = twenty_epochs();
  options.label_smoothing = 0.1;
  options.eval_every = 0;
  options.checkpoint_every_steps = 500;
  const auto rows = rows_of(options);
  EXPECT_EQ(rows.at("loss"), "cross-entropy, label smoothing 0.1");
  EXPECT_EQ(rows.at("tests"), "at the end");
  EXPECT_EQ(rows.at("checkpoints"), "every 500 steps; the newest 3 and the best are kept");
}

}  // namespace
}  // namespace convoy::app
