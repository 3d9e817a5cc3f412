// Tests sums and transfers by the GPUs' copy engines among all ranks of a host, which read and
// write each other's windows (memory that a rank opens to the others, peer_window.h). Ranks may
// share a GPU here, which NCCL would refuse, so NCCL is not used.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "comm/nccl/copy_all_reduce.h"
#include "kernels/device/device_memory.h"
#include "tests/comm/normal_values.h"
#include "tests/comm/same_bits.h"
#include "tests/mpi/world.h"

namespace convoy::comm {
namespace {

using test::normal_values;
using test::sum_of_normal_values;
using test::world;

class PeerWindowTest : public testing::Test {
 protected:
  // Makes window_ on all ranks, or skips the test if the GPUs cannot address each other.
  void make_window(std::size_t bytes, PeerWindow::Use use) {
    std::int32_t gpus = 0;
    try {
      gpus = kernels::gpu_count();
    } catch (const std::runtime_error&) {  // there is no driver
    }
    if (world().all_reduce(gpus, ReduceOp::min, "devices") == 0) GTEST_SKIP() << "needs a GPU";
    if (!PeerWindow::possible(world())) GTEST_SKIP() << "needs 2 to " << PeerWindow::kMostRanks << " ranks";
    kernels::use_gpu(rank_ % gpus);
    window_ = PeerWindow::create(world(), bytes, use);
    if (window_ == nullptr && gpus > 1)
      GTEST_SKIP() << "GPUs that do not address each other's memory over NVLink";
    ASSERT_NE(window_, nullptr);
  }
  std::byte* data() const { return window_->data(rank_); }

  const int ranks_ = world().size(), rank_ = world().rank();
  std::shared_ptr<PeerWindow> window_;
};

// Sums values that do not begin at the start of the window. The counts include fewer values than
// ranks, numbers that are no multiple of the vector length, and more values than the scratch memory
// holds. Replays the graph, because each run must leave all flags at zero for the next one.
TEST_F(PeerWindowTest, SumsInRankOrder) {
  make_window(std::size_t{40} << 20, PeerWindow::Use::sums);
  if (window_ == nullptr) return;
  constexpr std::size_t kOffset = 16 * 77;
  unsigned seed = 0;
  for (const std::int64_t count : {1, 5, 100'003, 9'400'003}) {
    const CopyAllReduce sum(window_, kOffset, count);
    const auto graph =
        kernels::CapturedGraph::capture([&](kernels::Stream stream) { sum.run(stream.get()); });
    for (int step = 0; step < 3; ++step) {
      const std::vector<float> mine = normal_values(rank_, count, ++seed);
      const std::size_t bytes = mine.size() * sizeof(float);
      kernels::copy_in(kernels::Backend::cuda, data() + kOffset, mine.data(), bytes);
      graph.launch({});
      std::vector<float> found(mine.size());
      kernels::copy_out(kernels::Backend::cuda, found.data(), data() + kOffset, bytes);
      ASSERT_TRUE(same_bits(found, sum_of_normal_values(ranks_, count, seed)))
          << count << " values, step " << step;
    }
  }
}

TEST_F(PeerWindowTest, NumbersSoManyTransfersAndNoMore) {
  make_window(1000, PeerWindow::Use::transfers);
  if (window_ == nullptr) return;
  for (int number = 0; number < PeerWindow::kMostTransfers; ++number) {
    ASSERT_EQ(window_->next_transfer(true, 1), number);
    ASSERT_EQ(window_->next_transfer(false, 1), number);
  }
  EXPECT_THROW(window_->next_transfer(true, 1), std::length_error);
  EXPECT_THROW(window_->next_transfer(false, 1), std::length_error);
  EXPECT_EQ(window_->next_transfer(true, 0), 0);
}

// Every rank sends to every other rank twice: once with the first possible number of a transfer,
// once with the last. The ranks' windows differ in size.
TEST_F(PeerWindowTest, BringsWhatIsSent) {
  constexpr int kCount = 250'001, kTransfers = 2;
  constexpr std::size_t kSlot = 1 << 20;
  const auto at = [&](int place, int transfer) {
    return (static_cast<std::size_t>(place) * kTransfers + transfer) * kSlot;
  };
  const auto number = [](int transfer) { return transfer == 0 ? 0 : PeerWindow::kMostTransfers - 1; };
  make_window(at(2 * ranks_ + rank_, 0), PeerWindow::Use::transfers);
  if (window_ == nullptr) return;
  // There is one stream for each peer and direction, and all ranks enqueue in the same order, as in
  // the steps of a partitioned network. So the transfers finish even on a device that runs only one
  // of them at a time.
  const std::vector<kernels::CudaStream> streams(static_cast<std::size_t>(2 * ranks_));
  std::vector<kernels::CudaEvent> joins(streams.size());
  const kernels::CudaEvent fork;
  const auto graph = kernels::CapturedGraph::capture([&](kernels::Stream stream) {
    fork.record(stream.get());
    for (const kernels::CudaStream& own : streams) fork.make_wait(own.get());
    for (int from = 0; from < ranks_; ++from)
      for (int to = 0; to < ranks_; ++to)
        for (int transfer = 0; transfer < kTransfers && from != to; ++transfer) {
          if (rank_ == to)
            window_->receive({from, number(transfer)}, streams[static_cast<std::size_t>(from)].get());
          if (rank_ == from)
            window_->send({to, number(transfer)}, data() + at(to, transfer),
                          {at(ranks_ + rank_, transfer), kCount * sizeof(float)},
                          streams[static_cast<std::size_t>(ranks_ + to)].get());
        }
    for (std::size_t i = 0; i < streams.size(); ++i) {
      joins[i].record(streams[i].get());
      joins[i].make_wait(stream.get());
    }
  });
  const auto seed = [&](int to, int transfer, int step) {
    return static_cast<unsigned>((to * kTransfers + transfer) * 10 + step);
  };
  for (int step = 0; step < 3; ++step) {
    for (int to = 0; to < ranks_; ++to)
      for (int transfer = 0; transfer < kTransfers; ++transfer)
        kernels::copy_in(kernels::Backend::cuda, data() + at(to, transfer),
                         normal_values(rank_, kCount, seed(to, transfer, step)).data(),
                         kCount * sizeof(float));
    graph.launch({});
    std::vector<float> found(kCount);
    for (int from = 0; from < ranks_; ++from)
      for (int transfer = 0; transfer < kTransfers && from != rank_; ++transfer) {
        kernels::copy_out(kernels::Backend::cuda, found.data(), data() + at(ranks_ + from, transfer),
                          kCount * sizeof(float));
        ASSERT_TRUE(same_bits(found, normal_values(from, kCount, seed(rank_, transfer, step))))
            << "from rank " << from << ", transfer " << transfer << ", step " << step;
      }
  }
}

}  // namespace
}  // namespace convoy::comm
