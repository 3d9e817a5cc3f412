// Tests the probabilities that evaluations on a GPU return while later steps are in flight.
#include <gtest/gtest.h>

#include <algorithm>

#include "app/execute/evaluate_batches.h"
#include "comm/single_rank.h"
#include "data/loader/loader.h"
#include "data/synthetic/random_images.h"
#include "kernels/device/device_memory.h"
#include "kernels/gemm/bench/measure.h"
#include "tests/app/execute/whole_session.h"

namespace convoy::app {
namespace {

using kernels::Backend;

constexpr std::int64_t kBatch = 32, kImages = 32 * 9 - 5;

// Returns a network with `classes` outputs. The number of threads that copy the probabilities to
// the host depends on `classes`.
Network small(int classes) {
  Network net("small", {kBatch, 3, 8, 8});
  const LayerId conv = net.add("conv", Conv2d::square(16, 3, 1, 1, true), net.input());
  const LayerId pool = net.add("pool", Pool::global(), net.add("relu", Relu{}, conv));
  net.add("fc", Linear{classes}, pool);
  return net;
}

// Evaluates random images and returns the probabilities of all images in their order.
std::vector<float> probabilities(Backend backend, int classes) {
  comm::SingleRank ranks;
  const auto set = std::make_shared<data::RandomImages>(data::ImageShape{8, 8, 3}, classes, kImages, 3);
  StepOptions options;
  options.backend = backend;
  options.training = false;
  options.keep_probabilities = true;
  data::LoaderOptions feed;
  feed.global_batch = kBatch;
  feed.order = data::Order::sequential;
  feed.mean = feed.std = {0.5f, 0.4f, 0.3f};
  if (backend == Backend::cuda) {
    options.input.kind = InputOptions::Kind::streamed;
    options.input.mean = options.input.std = feed.mean;
    options.input.stored = set->shape();
    options.input.batch_bytes = data::cut_capacity(set->shape(), set->shape(), kBatch);
    feed.output = data::BatchOutput::cuts;
    feed.memory = &kernels::pinned_memory();
    feed.buffers += kRingSlots;
  }
  data::Loader loader(set, feed);
  Session session = whole_session(small(classes), options, ranks);
  std::vector<float> all;
  evaluate_batches(session, loader, 0, [&](const EvaluatedBatch& batch) {
    for (std::size_t row = 0; row < batch.samples.size(); ++row) {
      if (batch.samples[row] < 0) continue;
      EXPECT_EQ(batch.samples[row], std::ssize(all) / classes);
      const auto values = batch.probabilities.subspan(row * classes, classes);
      all.insert(all.end(), values.begin(), values.end());
    }
  });
  return all;
}

TEST(CudaProbabilities, AreThoseOfTheCpu) {
  if (!kernels::gemm::device_present()) GTEST_SKIP() << "no GPU: probabilities were not read from one";
  kernels::use_gpu(0);
  for (const int classes : {5, 1000}) {
    const std::vector<float> expected = probabilities(Backend::cpu, classes);
    const std::vector<float> found = probabilities(Backend::cuda, classes);
    ASSERT_EQ(found.size(), static_cast<std::size_t>(kImages * classes));
    double largest = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
      largest = std::max(largest, std::abs(double{found[i]} - expected[i]) / expected[i]);
    EXPECT_LT(largest, 1e-4) << classes << " classes";
  }
}

}  // namespace
}  // namespace convoy::app
