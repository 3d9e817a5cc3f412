// Compares every implementation of Collectives with Communicator's MPI calls on host memory.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <stdexcept>

#include "comm/buckets.h"
#include "tests/comm/devices/device.h"
#include "tests/comm/normal_values.h"
#include "tests/comm/same_bits.h"
#include "tests/mpi/world.h"

namespace convoy::comm {
namespace {

using test::normal_values;
using test::OnDevice;
using test::world;

class DeviceCollectives : public testing::TestWithParam<test::Device*> {
 protected:
  void SetUp() override {
    const std::string missing = device().missing(world());
    if (!missing.empty()) GTEST_SKIP() << missing;
    collectives_ = device().collectives(world());
  }
  test::Device& device() { return *GetParam(); }
  Stream stream() { return device().stream(); }

  std::unique_ptr<Collectives> collectives_;
  const int ranks_ = world().size(), rank_ = world().rank();
};

INSTANTIATE_TEST_SUITE_P(On, DeviceCollectives, testing::ValuesIn(test::devices()),
                         [](const auto& info) { return info.param->name(); });

const std::int64_t kCounts[] = {0, 1, 37, 100'003, 3'000'001};

// Returns small whole numbers, whose sums are exact in every type and order.
template <typename T>
std::vector<T> numbers(int rank, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>((static_cast<std::size_t>(rank) * 31 + i * 7 + 3) % 23);
  return values;
}

template <typename T>
void expect_reductions_as_mpi(test::Device& device, Collectives& collectives, DType type) {
  for (const std::int64_t count : kCounts)
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
      auto expected = numbers<T>(world().rank(), count);
      const OnDevice<T> data(device, expected);
      world().all_reduce(std::span<T>(expected), op, "oracle");
      collectives.all_reduce(data.data(), count, type, op, device.stream(), "test");
      ASSERT_EQ(data.get(), expected) << count << " elements, operation " << static_cast<int>(op);
    }
}

TEST_P(DeviceCollectives, ReduceAsMpiDoes) {
  expect_reductions_as_mpi<float>(device(), *collectives_, DType::f32);
  expect_reductions_as_mpi<double>(device(), *collectives_, DType::f64);
  expect_reductions_as_mpi<std::int32_t>(device(), *collectives_, DType::i32);
}

TEST_P(DeviceCollectives, BroadcastFromEveryRoot) {
  for (const std::int64_t count : kCounts)
    for (int root = 0; root < ranks_; ++root) {
      const OnDevice<std::uint8_t> data(device(), numbers<std::uint8_t>(rank_, count));
      collectives_->broadcast(data.data(), count, DType::u8, root, stream(), "test");
      ASSERT_EQ(data.get(), numbers<std::uint8_t>(root, count)) << count << " bytes from rank " << root;
    }
}

// Runs a prepared sum several times, as training steps do, on a GPU in a captured graph. Every run
// must give the same bits.
TEST_P(DeviceCollectives, SumTheSameBitsInEveryStep) {
  for (const std::int64_t count : kCounts) {
    auto expected = normal_values(rank_, count, 5);
    OnDevice<float> data(device(), expected);
    world().all_reduce(std::span<float>(expected), ReduceOp::sum, "oracle");
    const auto operation = collectives_->prepare_all_reduce(data.data(), count, DType::f32, "test");
    const auto step = device().as_step([&](Stream stream) {
      operation->start(stream);
      operation->wait(stream);
    });
    std::vector<float> first;
    for (int run = 0; run < 3; ++run) {
      data.set(normal_values(rank_, count, 5));
      step();
      const auto sum = data.get();
      for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], expected[i], 1e-5) << "element " << i;
      if (run == 0) first = sum;
      ASSERT_TRUE(same_bits(sum, first)) << "run " << run;
    }
    // All ranks must have the same bits, because training goes on from them.
    auto of_rank_0 = first;
    world().broadcast(std::span<float>(of_rank_0), 0, "oracle");
    ASSERT_TRUE(same_bits(of_rank_0, first));
  }
}

TEST_P(DeviceCollectives, SumBfloat16InFloat) {
  // 256 + 1 rounds back to 256 in bf16, so adding in bf16 would lose every rank's 1.
  const float value = rank_ == 0 ? 256.0f : 1.0f;
  const auto narrow = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  const OnDevice<std::uint16_t> data(device(), std::vector<std::uint16_t>(1000, narrow));
  collectives_->all_reduce(data.data(), 1000, DType::bf16, ReduceOp::sum, stream(), "test");
  const float sum = std::bit_cast<float>(std::uint32_t{data.get()[999]} << 16);
  // Above 256 bf16 holds even numbers only. nearbyint() rounds to even as bf16 does.
  const float expected = 2 * std::nearbyint((256.0f + static_cast<float>(ranks_ - 1)) / 2);
  EXPECT_EQ(sum, expected);
  EXPECT_THROW(collectives_->all_reduce(data.data(), 10, DType::bf16, ReduceOp::max, stream(), "test"),
               std::invalid_argument);
}

// Every rank prepares two receives and two sends around a ring, as stages of a partitioned network
// do, and starts the receives first. If transfers blocked each other, this would hang.
TEST_P(DeviceCollectives, SendAroundARing) {
  if (ranks_ < 2) GTEST_SKIP() << "needs two ranks";
  const int before = (rank_ + ranks_ - 1) % ranks_;
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{300'001}}) {
    const OnDevice<float> out(device(), numbers<float>(rank_, count)),
        other(device(), normal_values(rank_, count, 9));
    const OnDevice<float> in(device(), normal_values(0, count, 1)),
        second(device(), normal_values(0, count, 2));
    const auto receive = collectives_->prepare_receive(in.data(), count, DType::f32, before, "edge");
    const auto receive_second =
        collectives_->prepare_receive(second.data(), count, DType::f32, before, "edge 2");
    const int after = (rank_ + 1) % ranks_;
    const auto send = collectives_->prepare_send(out.data(), count, DType::f32, after, "edge");
    const auto send_second = collectives_->prepare_send(other.data(), count, DType::f32, after, "edge 2");
    const auto step = device().as_step([&](Stream stream) {
      for (auto* operation : {receive.get(), receive_second.get(), send.get(), send_second.get()})
        operation->start(stream);
      while (!send->progress()) {
      }
      for (auto* operation : {send_second.get(), send.get(), receive_second.get(), receive.get()})
        operation->wait(stream);
    });
    for (int run = 0; run < 2; ++run) {
      step();
      // Transfers are matched in the order in which they start, whatever the order of the waits.
      ASSERT_EQ(in.get(), numbers<float>(before, count));
      ASSERT_EQ(second.get(), normal_values(before, count, 9));
    }
  }
}

// Later sends may use pairs of ranks that the first one did not connect. They must connect even if
// every rank starts its send first.
TEST_P(DeviceCollectives, SendOverPairsThatArePreparedLater) {
  if (ranks_ < 2) GTEST_SKIP() << "needs two ranks";
  constexpr std::int64_t kCount = 300'001;
  const OnDevice<float> out(device(), numbers<float>(rank_, kCount)),
      in(device(), normal_values(0, kCount, 1)), first(device(), normal_values(0, kCount, 2));
  if (rank_ == 0) collectives_->send(out.data(), kCount, DType::f32, 1, stream(), "first");
  if (rank_ == 1) {
    collectives_->receive(first.data(), kCount, DType::f32, 0, stream(), "first");
    ASSERT_EQ(first.get(), numbers<float>(0, kCount));
  }
  const int before = (rank_ + ranks_ - 1) % ranks_, after = (rank_ + 1) % ranks_;
  const auto send = collectives_->prepare_send(out.data(), kCount, DType::f32, after, "edge");
  const auto receive = collectives_->prepare_receive(in.data(), kCount, DType::f32, before, "edge");
  for (auto* operation : {send.get(), receive.get()}) operation->start(stream());
  for (auto* operation : {send.get(), receive.get()}) operation->wait(stream());
  ASSERT_EQ(in.get(), numbers<float>(before, kCount));
}

TEST_P(DeviceCollectives, ReduceBucketsAsOneSum) {
  const std::vector<BucketSegment> segments{{0, 70'000}, {70'000, 1}, {70'001, 200'000}, {270'001, 30'000}};
  const std::int64_t count = 300'001;
  OnDevice<float> gradients(device(), normal_values(rank_, count, 3));
  auto expected = normal_values(rank_, count, 3);
  world().all_reduce(std::span<float>(expected), ReduceOp::sum, "oracle");
  GradientBuckets buckets(*collectives_, gradients.data(), segments,
                          {.bytes = 400'000, .edge_bytes = 40'000});
  ASSERT_GT(buckets.buckets().size(), 2u);
  const auto step = device().as_step([&](Stream stream) {
    for (int bucket = 0; bucket < std::ssize(buckets.buckets()); ++bucket) buckets.start(bucket, stream);
    buckets.wait_all(stream);
    // This all-reduce comes after the wait on the same stream, so it must read gradients that are
    // reduced.
    collectives_->all_reduce(gradients.data(), 1, DType::f32, ReduceOp::max, stream, "after the bucket");
  });
  for (int run = 0; run < 2; ++run) {
    gradients.set(normal_values(rank_, count, 3));
    step();
    const auto sum = gradients.get();
    for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], expected[i], 1e-5) << "element " << i;
  }
}

// Returns values of very different magnitudes, so that the order of adding shows in the sum.
float uneven(int rank, std::int64_t index, int step) {
  const auto bits = static_cast<std::uint32_t>(index * 2'654'435'761 + rank * 40'503 + step * 97);
  return std::ldexp(static_cast<float>(bits % 65'536) - 32'768.0f, static_cast<int>(bits >> 27) - 40);
}

// Sends between buffers in transfer_memory(), whose sizes differ among the ranks. Each send must
// reach the receive prepared for it, whichever of them starts first.
TEST_P(DeviceCollectives, TransfersBetweenTheirMemory) {
  if (ranks_ < 2) GTEST_SKIP() << "needs two ranks";
  constexpr std::int64_t kCount = 300'001;
  const auto slot = [](int index) { return static_cast<std::size_t>(index) * kCount * sizeof(float); };
  const auto memory = collectives_->transfer_memory(slot(4 + rank_));
  if (memory == nullptr) GTEST_SKIP() << "any memory will do here";
  const int before = (rank_ + ranks_ - 1) % ranks_, after = (rank_ + 1) % ranks_;
  std::vector<std::unique_ptr<PreparedOperation>> operations;
  for (int edge = 0; edge < 2; ++edge) {
    operations.push_back(
        collectives_->prepare_receive(memory.get() + slot(2 + edge), kCount, DType::f32, before, "edge"));
    operations.push_back(
        collectives_->prepare_send(memory.get() + slot(edge), kCount, DType::f32, after, "edge"));
  }
  const auto step = device().as_step([&](Stream stream) {
    for (const auto& operation : operations) operation->start(stream);
    for (const auto& operation : operations) operation->wait(stream);
  });
  for (unsigned run = 0; run < 3; ++run) {
    for (int edge = 0; edge < 2; ++edge)
      device().copy_in(memory.get() + slot(edge), normal_values(rank_, kCount, 2 * run + edge).data(),
                       slot(1));
    step();
    std::vector<float> found(kCount);
    for (int edge = 0; edge < 2; ++edge) {
      device().copy_out(found.data(), memory.get() + slot(2 + edge), slot(1));
      ASSERT_EQ(found, normal_values(before, kCount, 2 * run + edge)) << "edge " << edge << ", run " << run;
    }
  }
}

// A network that is partitioned into stages may need as many transfers as this test makes.
TEST_P(DeviceCollectives, ManyTransfersBetweenTheirMemory) {
  if (ranks_ < 2) GTEST_SKIP() << "needs two ranks";
  constexpr std::int64_t kTransfers = 520;
  const auto memory = collectives_->transfer_memory(2 * kTransfers * sizeof(float));
  if (memory == nullptr) GTEST_SKIP() << "any memory will do here";
  auto* const sent = reinterpret_cast<float*>(memory.get());
  float* const received = sent + kTransfers;
  const int before = (rank_ + ranks_ - 1) % ranks_, after = (rank_ + 1) % ranks_;
  std::vector<std::unique_ptr<PreparedOperation>> operations;
  for (std::int64_t i = 0; i < kTransfers; ++i) {
    operations.push_back(collectives_->prepare_receive(received + i, 1, DType::f32, before, "value"));
    operations.push_back(collectives_->prepare_send(sent + i, 1, DType::f32, after, "value"));
  }
  const auto step = device().as_step([&](Stream stream) {
    for (const auto& operation : operations) operation->start(stream);
    for (const auto& operation : operations) operation->wait(stream);
  });
  std::vector<float> found(kTransfers);
  for (unsigned run = 0; run < 3; ++run) {
    device().copy_in(sent, normal_values(rank_, kTransfers, run).data(), kTransfers * sizeof(float));
    step();
    device().copy_out(found.data(), received, kTransfers * sizeof(float));
    ASSERT_EQ(found, normal_values(before, kTransfers, run)) << "run " << run;
  }
}

// Sums two slices of shared memory, whose ends are not aligned. The memory before, between and
// after the slices must keep its values. The second slice exceeds the GPUs' scratch memory, so GPUs
// sum it in chunks.
TEST_P(DeviceCollectives, SumInRankOrderInSharedMemory) {
  if (ranks_ < 2) GTEST_SKIP() << "needs two ranks";
  const std::vector<std::pair<std::int64_t, std::int64_t>> slices{{4, 4'300'003}, {4'300'100, 8'500'001}};
  const std::int64_t count = slices[1].first + slices[1].second + 5;
  const auto memory = collectives_->shared_memory(static_cast<std::size_t>(count) * sizeof(float));
  if (memory == nullptr) GTEST_SKIP() << "these ranks cannot address each other's memory";
  auto* const data = reinterpret_cast<float*>(memory.get());
  std::vector<std::unique_ptr<PreparedOperation>> operations;
  for (const auto& [first, length] : slices)
    operations.push_back(collectives_->prepare_all_reduce(data + first, length, DType::f32, "slice"));
  int made = 0;
  std::vector<float> values(static_cast<std::size_t>(count));
  const auto set = [&] {
    for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = uneven(rank_, i, made);
    device().copy_in(data, values.data(), values.size() * sizeof(float));
  };
  set();
  const auto step = device().as_step([&](Stream stream) {
    for (const auto& operation : operations) operation->start(stream);
    for (const auto& operation : operations) operation->wait(stream);
  });
  for (made = 1; made < 4; ++made) {
    set();
    world().barrier("values");
    step();
    device().copy_out(values.data(), data, values.size() * sizeof(float));
    std::size_t slice = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      if (slice < slices.size() && i >= slices[slice].first + slices[slice].second) ++slice;
      float expected = uneven(rank_, i, made);
      if (slice < slices.size() && i >= slices[slice].first) {
        expected = uneven(0, i, made);
        for (int rank = 1; rank < ranks_; ++rank) expected += uneven(rank, i, made);
      }
      ASSERT_EQ(values[static_cast<std::size_t>(i)], expected) << "element " << i << ", step " << made;
    }
  }
}

// Rank 0 fails while it builds its step. The destructor of Asking still asks for shared memory, but
// for 0 bytes. The other ranks must then get none, and must not wait for rank 0.
TEST_P(DeviceCollectives, ShareNothingWithARankThatFailed) {
  if (ranks_ < 2) GTEST_SKIP() << "needs two ranks";
  struct Asking {
    Collectives& collectives;
    ~Asking() {
      EXPECT_EQ(collectives.shared_memory(0), nullptr);
      EXPECT_EQ(collectives.transfer_memory(0), nullptr);
    }
  };
  if (rank_ == 0) {
    try {
      const Asking asking{*collectives_};
      throw std::runtime_error("no such model");
    } catch (const std::runtime_error&) {
    }
  } else {
    EXPECT_EQ(collectives_->shared_memory(4096), nullptr);
    EXPECT_EQ(collectives_->transfer_memory(4096), nullptr);
  }
  EXPECT_EQ(world().all_reduce(std::int32_t{1}, ReduceOp::sum, "after"), ranks_);
  // A rank that lacks the memory may throw, but only after it has taken part in the collective
  // call.
  try {
    EXPECT_EQ(collectives_->shared_memory(rank_ == 0 ? std::size_t{1} << 50 : 4096), nullptr);
  } catch (const std::runtime_error&) {
    EXPECT_EQ(rank_, 0);
  }
  EXPECT_EQ(world().all_reduce(std::int32_t{1}, ReduceOp::sum, "after"), ranks_);
}

// Sums batch norm statistics, which are needed at once, while a bucket of gradients is still being
// summed.
TEST_P(DeviceCollectives, SumStatisticsDuringABucket) {
  OnDevice<float> gradients(device(), numbers<float>(rank_, 3'000'001));
  OnDevice<double> statistics(device(), numbers<double>(rank_, 129));
  auto expected = numbers<double>(rank_, 129);
  auto expected_gradients = numbers<float>(rank_, 3'000'001);
  world().all_reduce(std::span<double>(expected), ReduceOp::sum, "oracle");
  world().all_reduce(std::span<float>(expected_gradients), ReduceOp::sum, "oracle");
  const auto bucket =
      collectives_->prepare_all_reduce(gradients.data(), gradients.size(), DType::f32, "bucket");
  const auto sum = collectives_->prepare_all_reduce(statistics.data(), 129, DType::f64, "statistics");
  const auto step = device().as_step([&](Stream stream) {
    bucket->start(stream);
    sum->start(stream);
    sum->wait(stream);
    bucket->wait(stream);
  });
  gradients.set(numbers<float>(rank_, 3'000'001));
  statistics.set(numbers<double>(rank_, 129));
  step();
  ASSERT_EQ(statistics.get(), expected);
  ASSERT_EQ(gradients.get(), expected_gradients);
}

TEST_P(DeviceCollectives, RefuseWrongArguments) {
  const OnDevice<float> data(device(), std::vector<float>(10));
  EXPECT_THROW(collectives_->all_reduce(nullptr, 10, DType::f32, ReduceOp::sum, stream(), "x"),
               std::invalid_argument);
  EXPECT_THROW(collectives_->broadcast(data.data(), 10, DType::f32, ranks_, stream(), "x"),
               std::invalid_argument);
  EXPECT_THROW(collectives_->prepare_all_reduce(data.data(), 10, DType::u8, "x"), std::invalid_argument);
  EXPECT_THROW(collectives_->prepare_send(nullptr, 0, DType::f32, rank_, "edge"), std::invalid_argument);
  EXPECT_THROW(collectives_->prepare_receive(nullptr, 0, DType::f32, ranks_, "edge"), std::invalid_argument);
  if (ranks_ < 2) return;
  const auto operation = collectives_->prepare_all_reduce(data.data(), 10, DType::f32, "twice");
  operation->start(stream());
  EXPECT_THROW(operation->start(stream()), std::logic_error);
  operation->wait(stream());
  EXPECT_EQ(data.get(), std::vector<float>(10));
}

}  // namespace
}  // namespace convoy::comm
