#include "data/loader/scatter_loader.h"

#include <barrier>
#include <cstring>
#include <thread>

#include "tests/data/loader/loader_support.h"

namespace convoy::data {
namespace {

using namespace testing;

// Imitates a scatter of MPI: each thread is a rank, and rank 0 provides the data.
class ThreadGroup {
 public:
  explicit ThreadGroup(int ranks) : barrier_(ranks) {}
  Scatter scatter(int rank) {
    return [this, rank](const ScatterArguments& arguments) {
      if (rank == 0) root_ = arguments;
      barrier_.arrive_and_wait();
      const std::byte* from = root_.send;
      for (int before = 0; before < rank; ++before) from += root_.counts[before];
      arguments.receive->assign(from, from + root_.counts[rank]);
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

SetDescription describe(const ImageSet& set) { return {set.size(), set.format(), set.shape()}; }

// ScatterLoader must give the same bits as Loader for every number of ranks, output and kind of
// set, and from any start.
TEST(ScatterLoader, GivesWhatLoaderGives) {
  const std::shared_ptr<const ImageSet> sets[] = {std::make_shared<TestSet>(43),
                                                  std::make_shared<EncodedSet>(43)};
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (const auto output : {BatchOutput::images, BatchOutput::cuts, BatchOutput::labels}) {
      for (const auto& set : sets) {
        ThreadGroup group(ranks);
        std::vector<std::vector<BatchCopy>> scattered(ranks);
        const auto options_of = [&](int rank) {
          auto options = loader_options(8, rank, ranks);
          options.output = output;
          options.threads = 1 + rank % 2;
          options.start = {0, ranks - 1};
          if (set->format() == ImageFormat::encoded)
            options.augmentation.height = options.augmentation.width = 24;
          return options;
        };
        {
          std::vector<std::jthread> threads;
          for (int rank = 0; rank < ranks; ++rank) {
            threads.emplace_back([&, rank] {
              const LoaderOptions options = options_of(rank);
              ScatterLoader loader(rank == 0 ? set : nullptr, describe(*set), options, group.scatter(rank));
              EXPECT_EQ(loader.steps_per_epoch(), 6);
              scattered[rank] = take(loader, 11, &options);
            });
          }
        }
        for (int rank = 0; rank < ranks; ++rank) {
          const LoaderOptions options = options_of(rank);
          Loader loader(set, options);
          EXPECT_EQ(scattered[rank], take(loader, 11, &options)) << rank << " of " << ranks;
        }
        // Eleven batches were taken, and one more was scattered ahead.
        EXPECT_EQ(group.calls(), 12 * ranks);
      }
    }
  }
}

TEST(ScatterLoader, ABatchMayBeHeldWhileTheNextIsFetched) {
  const auto set = std::make_shared<TestSet>(43);
  ThreadGroup group(1);
  ScatterLoader loader(set, describe(*set), loader_options(8), group.scatter(0));
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
  ScatterLoader loader(set, describe(*set), options, group.scatter(0));
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
    ScatterLoader(std::move(given), {size, ImageFormat::pixels, {6, 5, 3}}, options, group.scatter(0));
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
