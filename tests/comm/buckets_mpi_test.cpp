// Compares gradient buckets (gradients of several parameters that the ranks sum in one operation)
// on host memory with plain collectives and serial sums.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "comm/buckets.h"
#include "comm/communicator.h"
#include "tests/comm/normal_values.h"
#include "tests/comm/same_bits.h"
#include "tests/mpi/world.h"

namespace convoy::comm {
namespace {

using test::normal_values;
using test::sum_of_normal_values;
using test::world;

struct Layout {
  std::vector<BucketSegment> segments;
  std::size_t elements = 0;
};

Layout random_layout(std::mt19937& random) {
  Layout layout;
  std::int64_t offset = 0;
  for (std::size_t i = 0, count = 1 + random() % 14; i < count; ++i) {
    const auto length = static_cast<std::int64_t>(random() % 3 == 0 ? random() % 20'000 : random() % 200);
    layout.segments.push_back({offset, length});
    offset += length;
  }
  layout.elements = static_cast<std::size_t>(offset);
  return layout;
}

// Gradients in this rank's own memory or in memory that the ranks share. Buckets sum shared memory
// in place, and send messages for other memory.
class Gradients {
 public:
  Gradients(Collectives& collectives, bool shared, std::size_t elements)
      : own_(shared ? 0 : elements),
        shared_(shared ? collectives.shared_memory(elements * sizeof(float)) : nullptr) {
    EXPECT_EQ(shared_ != nullptr, shared && world().size() > 1) << "one host's ranks see each other's memory";
    if (shared && shared_ == nullptr) own_.resize(elements);
    values_ = {shared_ ? reinterpret_cast<float*>(shared_.get()) : own_.data(), elements};
  }
  std::span<float> values() const { return values_; }

 private:
  std::vector<float> own_;
  std::shared_ptr<std::byte> shared_;
  std::span<float> values_;
};

class WithMemory : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(OwnOrShared, WithMemory, testing::Bool());

TEST_P(WithMemory, BucketsGiveTheSumInRankOrderWhateverTheSegments) {
  const auto collectives = make_mpi_collectives(world());
  std::mt19937 shared(11);  // the same numbers on every rank
  // This generator has another seed on each rank. It chooses random delays.
  std::mt19937 own(100 + static_cast<unsigned>(world().rank()));
  for (unsigned trial = 0; trial < 6; ++trial) {
    const Layout layout = random_layout(shared);
    const Gradients memory(*collectives, GetParam(), layout.elements);
    const std::span<float> gradients = memory.values();
    const BucketSizes sizes{4 * (1 + static_cast<std::int64_t>(shared() % 10'000)),
                            4 * (1 + static_cast<std::int64_t>(shared() % 500))};
    GradientBuckets buckets(*collectives, gradients.data(), layout.segments, sizes);
    for (unsigned step = 0; step < 2; ++step) {
      const auto mine = normal_values(world().rank(), layout.elements, trial * 2 + step);
      int next = 0;
      for (int segment = 0; segment < std::ssize(layout.segments); ++segment) {
        // Write a segment's gradients only when it is finished. A bucket that is sent too early
        // then carries old values, and the sums are wrong.
        const auto& [offset, count] = layout.segments[static_cast<std::size_t>(segment)];
        std::copy_n(mine.begin() + offset, count, gradients.begin() + offset);
        while (next < std::ssize(buckets.buckets()) &&
               buckets.buckets()[static_cast<std::size_t>(next)].last_segment == segment)
          buckets.start(next++);
        if (own() % 2 == 0) buckets.progress();
      }
      EXPECT_GE(buckets.wait_all(), 0);
      const auto expected = sum_of_normal_values(world().size(), layout.elements, trial * 2 + step);
      ASSERT_TRUE(same_bits(gradients, expected)) << "trial " << trial << ", step " << step;
      std::vector<float> plain = mine;
      world().all_reduce(std::span<float>(plain), ReduceOp::sum, "oracle");
      for (std::size_t i = 0; i < plain.size(); ++i)
        ASSERT_NEAR(gradients[i], plain[i], 1e-5) << "element " << i;
    }
  }
}

// A rank that is a step ahead must not overwrite values that another rank still reads. No rank may
// mistake the sum of the last step for that of this step.
TEST_P(WithMemory, EveryStepHasItsOwnSum) {
  const auto collectives = make_mpi_collectives(world());
  const std::vector<BucketSegment> segments{{0, 700}, {700, 2000}, {2700, 1}};
  const Gradients memory(*collectives, GetParam(), 2701);
  GradientBuckets buckets(*collectives, memory.values().data(), segments, {.bytes = 2800, .edge_bytes = 400});
  std::mt19937 own(static_cast<unsigned>(world().rank()));
  for (int step = 0; step < 300; ++step) {
    std::ranges::fill(memory.values(), static_cast<float>(step * (world().rank() + 1)));
    for (int bucket = 0; bucket < std::ssize(buckets.buckets()); ++bucket) {
      buckets.start(bucket);
      for (std::uint32_t turn = own() % 4; turn > 0; --turn) sched_yield();
      if (own() % 2 == 0) buckets.progress();
    }
    buckets.wait_all();
    const auto sum = static_cast<float>(step * world().size() * (world().size() + 1) / 2);
    ASSERT_EQ(std::ranges::count(memory.values(), sum), 2701) << "step " << step;
  }
}

TEST(Collectives, SumMoreBuffersThanASharedWindowCounts) {
  const auto collectives = make_mpi_collectives(world());
  const Gradients memory(*collectives, true, 1100);
  std::ranges::fill(memory.values(), 1.0f);
  std::vector<std::unique_ptr<PreparedOperation>> operations;
  for (float& value : memory.values())
    operations.push_back(collectives->prepare_all_reduce(&value, 1, DType::f32, "one value"));
  for (const auto& operation : operations) operation->start({});
  for (const auto& operation : operations) operation->wait({});
  EXPECT_EQ(std::ranges::count(memory.values(), static_cast<float>(world().size())), 1100);
}

TEST(GradientBuckets, StartInOrderOnly) {
  const auto collectives = make_mpi_collectives(world());
  std::vector<float> gradients(300, 1.0f);
  const std::vector<BucketSegment> segments{{0, 100}, {100, 100}, {200, 100}};
  GradientBuckets buckets(*collectives, gradients.data(), segments, {.bytes = 400, .edge_bytes = 400});
  ASSERT_EQ(buckets.buckets().size(), 3u);
  EXPECT_THROW(buckets.start(1), std::logic_error);
  EXPECT_THROW(buckets.wait_all(), std::logic_error) << "nothing was started";
  for (int step = 0; step < 2; ++step) {
    for (int bucket = 0; bucket < 3; ++bucket) buckets.start(bucket);
    EXPECT_THROW(buckets.start(3), std::logic_error);
    if (step == 0) buckets.wait_all();
  }
  buckets.wait_all();
  const float ranks = static_cast<float>(world().size());
  EXPECT_EQ(gradients, std::vector<float>(300, ranks * ranks));
}

}  // namespace
}  // namespace convoy::comm
