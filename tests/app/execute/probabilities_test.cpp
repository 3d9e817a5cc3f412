// Tests the probabilities that an evaluation returns batch by batch.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "app/execute/evaluate_batches.h"
#include "app/model/zoo/zoo.h"
#include "comm/single_rank.h"
#include "data/loader/loader.h"
#include "data/synthetic/random_images.h"
#include "tests/app/execute/whole_session.h"

namespace convoy::app {
namespace {

constexpr int kClasses = 7;
constexpr std::int64_t kImages = 21, kBatch = 8;  // the last batch is not full

StepOptions evaluation(bool keep) {
  StepOptions options;
  options.training = false;
  options.keep_probabilities = keep;
  return options;
}

struct Evaluated {
  StepMetrics sum;
  std::vector<std::int64_t> samples;
  // These three are computed from the probabilities. `most_off` is the largest distance of the sum
  // of an image's probabilities from 1.
  double loss = 0, hits = 0, most_off = 0;
};

Evaluated evaluate(std::shared_ptr<const data::ImageSet> set) {
  comm::SingleRank ranks;
  Session session =
      whole_session(make_network("wrn10_1", {kBatch, 3, 32, 32}, kClasses), evaluation(true), ranks);
  data::LoaderOptions loader;
  loader.global_batch = kBatch;
  loader.order = data::Order::sequential;
  loader.mean = loader.std = {0.5f, 0.5f, 0.5f};
  data::Loader source(std::move(set), loader);
  Evaluated result;
  result.sum = evaluate_batches(session, source, 0, [&](const EvaluatedBatch& batch) {
    ASSERT_EQ(batch.probabilities.size(), static_cast<std::size_t>(kBatch * kClasses));
    for (std::size_t row = 0; row < batch.samples.size(); ++row) {
      if (batch.samples[row] < 0) continue;
      result.samples.push_back(batch.samples[row]);
      const auto values = batch.probabilities.subspan(row * kClasses, kClasses);
      result.most_off = std::max(result.most_off, std::abs(std::reduce(values.begin(), values.end(), -1.0)));
      if (batch.labels[row] < 0) continue;
      result.loss -= std::log(values[batch.labels[row]]);
      result.hits += std::ranges::max_element(values) - values.begin() == batch.labels[row];
    }
  });
  return result;
}

TEST(Session, RefusesKindsOfStepsThatItWasNotMadeFor) {
  comm::SingleRank ranks;
  const Network network = make_network("wrn10_1", {kBatch, 3, 32, 32}, kClasses);
  Session evaluates = whole_session(network, evaluation(false), ranks);
  EXPECT_THROW(evaluates.start(StepKind::train), std::logic_error);
  StepOptions whole_batches;
  Session trains = whole_session(network, whole_batches, ranks);
  EXPECT_THROW(trains.start(StepKind::train_part), std::logic_error);
  EXPECT_EQ(evaluates.steps_in_flight() + trains.steps_in_flight(), 0);
}

TEST(Session, RefusesBatchesThatItCannotRead) {
  comm::SingleRank ranks;
  const auto set = std::make_shared<data::RandomImages>(data::ImageShape{32, 32, 3}, kClasses, kImages, 3);
  data::LoaderOptions loader;
  loader.global_batch = kBatch;
  loader.mean = loader.std = {0.5f, 0.5f, 0.5f};
  loader.output = data::BatchOutput::transforms;
  data::Loader without_images(set, loader);
  loader.output = data::BatchOutput::images;
  data::Loader with_images(set, loader);
  Session session =
      whole_session(make_network("wrn10_1", {kBatch, 3, 32, 32}, kClasses), evaluation(false), ranks);
  EXPECT_THROW(session.input().load(without_images.next()), std::invalid_argument);
  session.input().load(with_images.next());
  session.start(StepKind::evaluate);
  EXPECT_THROW(session.input().load(with_images.next()), std::logic_error) << "a step is in flight";
  EXPECT_EQ(session.finish_step().metrics[0].samples, kBatch);
  EXPECT_THROW(session.retire(1), std::out_of_range);
}

TEST(Probabilities, AreThoseOfTheLoss) {
  const Evaluated result =
      evaluate(std::make_shared<data::RandomImages>(data::ImageShape{32, 32, 3}, kClasses, kImages, 5));
  std::vector<std::int64_t> expected(kImages);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(result.samples, expected);
  EXPECT_LT(result.most_off, 1e-6);
  EXPECT_NEAR(result.loss, result.sum.loss_sum, 1e-5 * result.sum.loss_sum);
  EXPECT_EQ(result.hits, result.sum.top1);
}

TEST(Probabilities, ImagesWithoutLabelsHaveThemAndCountNowhere) {
  const Evaluated result = evaluate(
      data::renumber(std::make_shared<data::RandomImages>(data::ImageShape{32, 32, 3}, kClasses, kImages, 5),
                     std::vector<std::int32_t>(kClasses, -1)));
  EXPECT_EQ(std::ssize(result.samples), kImages);
  EXPECT_LT(result.most_off, 1e-6);
  EXPECT_EQ(result.sum.samples, 0);
}

TEST(Probabilities, OnlyStepsThatDoNotTrainKeepThem) {
  comm::SingleRank ranks;
  StepOptions options = evaluation(true);
  options.training = true;
  EXPECT_THROW(whole_session(make_network("lenet", {4, 3, 32, 32}, kClasses), options, ranks),
               std::invalid_argument);
}

}  // namespace
}  // namespace convoy::app
