#include "data/loader/scatter_loader.h"

#include <barrier>
#include <cstring>
#include <thread>

#include "tests/data/loader_support.h"

namespace convoy::data {
namespace {

using namespace testing;

// MPI_Scatterv between threads: every rank of the group calls it, rank 0 with the data.
class ThreadGroup {
 public:
  explicit ThreadGroup(int ranks) : barrier_(ranks) {}
  Scatter scatter(int rank) {
    return [this, rank](const ScatterArguments& arguments) {
      if (rank == 0) root_ = arguments;
      barrier_.arrive_and_wait();
      const auto index = static_cast<std::size_t>(rank);
      EXPECT_EQ(root_.counts[index], arguments.receive_count);
      EXPECT_EQ(root_.record_bytes, arguments.record_bytes);
      const auto* from = static_cast<const std::byte*>(root_.send) +
                         static_cast<std::size_t>(root_.displacements[index]) * arguments.record_bytes;
      const std::size_t bytes = static_cast<std::size_t>(arguments.receive_count) * arguments.record_bytes;
      if (bytes > 0) std::memcpy(arguments.receive, from, bytes);
      barrier_.arrive_and_wait();
      ++calls_;
    };
  }
  int calls() const { return calls_; }

 private:
  std::barrier<> barrier_;
  ScatterArguments root_;
  std::atomic<int> calls_{0};
};

// For every rank count, output and order, starting anywhere: the same bits as from Loader.
TEST(ScatterLoader, GivesWhatLoaderGives) {
  const auto set = std::make_shared<TestSet>(43);
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (const auto output : {BatchOutput::row_major, BatchOutput::raw}) {
      ThreadGroup group(ranks);
      std::vector<std::vector<BatchCopy>> scattered(static_cast<std::size_t>(ranks)), read = scattered;
      const auto options_of = [&](int rank) {
        auto options = loader_options(8, rank, ranks);
        options.output = output;
        options.threads = 1 + rank % 2;
        options.start = {0, ranks - 1};
        return options;
      };
      {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < ranks; ++rank) {
          threads.emplace_back([&, rank] {
            ScatterLoader loader(rank == 0 ? set : nullptr, set->size(), set->shape(), options_of(rank),
                                 group.scatter(rank));
            EXPECT_EQ(loader.steps_per_epoch(), 6);
            scattered[static_cast<std::size_t>(rank)] = take(loader, 11);
          });
        }
      }
      for (int rank = 0; rank < ranks; ++rank) {
        Loader loader(set, options_of(rank));
        EXPECT_EQ(scattered[static_cast<std::size_t>(rank)], take(loader, 11)) << rank << " of " << ranks;
      }
      // One scatter ahead of the eleven batches that were taken.
      EXPECT_EQ(group.calls(), 12 * ranks);
    }
  }
}

TEST(ScatterLoader, ABatchMayBeHeldWhileTheNextIsFetched) {
  const auto set = std::make_shared<TestSet>(43);
  ThreadGroup group(1);
  ScatterLoader loader(set, set->size(), set->shape(), loader_options(8), group.scatter(0));
  Loader reference(set, loader_options(8));
  auto held = loader.next();
  const BatchCopy copy(*held);
  EXPECT_EQ(copy, BatchCopy(*reference.next()));
  for (int i = 0; i < 20; ++i) {
    auto next = loader.next();
    EXPECT_EQ(BatchCopy(*next), BatchCopy(*reference.next()));
    held = std::move(next);
  }
  EXPECT_THROW(
      {
        auto second = loader.next();
        auto third = loader.next();
      },
      std::logic_error);
}

TEST(ScatterLoader, AReadErrorReachesNextOfRankZero) {
  const auto set = std::make_shared<TestSet>(43);
  set->bad_sample = 17;
  auto options = loader_options(8);
  options.order = Order::sequential;
  ThreadGroup group(1);
  ScatterLoader loader(set, set->size(), set->shape(), options, group.scatter(0));
  EXPECT_NO_THROW(loader.next());
  expect_error(
      [&] {
        loader.next();
        loader.next();
      },
      {"set.h5", "cannot read"});
}

TEST(ScatterLoader, RefusesWhatItCannotDo) {
  const auto set = std::make_shared<TestSet>(43);
  ThreadGroup group(1);
  const auto make = [&](std::shared_ptr<TestSet> given, std::int64_t size, LoaderOptions options) {
    ScatterLoader(std::move(given), size, ImageShape{6, 5, 3}, options, group.scatter(0));
  };
  auto two = loader_options(8);
  two.buffers = 2;
  EXPECT_THROW(make(set, 43, two), std::invalid_argument);
  EXPECT_THROW(make(nullptr, 43, loader_options(8)), std::invalid_argument);
  EXPECT_THROW(make(set, 43, loader_options(8, 1, 2)), std::invalid_argument);
  EXPECT_THROW(make(set, 42, loader_options(8)), std::invalid_argument);
  expect_error([&] { make(set, 43, loader_options(2, 0, 3)); }, {"global batch 2"});
}

}  // namespace
}  // namespace convoy::data
