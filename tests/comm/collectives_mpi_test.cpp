// Compares every collective, at many sizes, with serial sums and copies of all ranks' data.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "tests/mpi/world.h"

namespace convoy::comm {
namespace {

using test::world;

// Returns small whole numbers. Their sums are exact in every type, so the order of adding does not
// matter.
template <typename T>
T value_of(int rank, std::size_t index) {
  return static_cast<T>((static_cast<std::size_t>(rank) * 31 + index * 7 + 3) % 23);
}

template <typename T>
std::vector<T> data_of(int rank, std::size_t size) {
  std::vector<T> data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = value_of<T>(rank, i);
  return data;
}

template <typename T>
std::vector<T> reduced(std::size_t size, ReduceOp op) {
  std::vector<T> result = data_of<T>(0, size);
  for (int rank = 1; rank < world().size(); ++rank)
    for (std::size_t i = 0; i < size; ++i) {
      const T value = value_of<T>(rank, i);
      result[i] = op == ReduceOp::sum   ? static_cast<T>(result[i] + value)
                  : op == ReduceOp::max ? std::max(result[i], value)
                                        : std::min(result[i], value);
    }
  return result;
}

// Lowers the size at which messages are cut into chunks, so that small messages test the cutting.
// The result must be that of a message in one piece.
class ChunkSize {
 public:
  explicit ChunkSize(std::int64_t bytes) : saved_(world().context().chunk_bytes) {
    world().context().chunk_bytes = bytes;
  }
  ~ChunkSize() { world().context().chunk_bytes = saved_; }

 private:
  std::int64_t saved_;
};

struct Case {
  std::size_t size;
  std::int64_t chunk_bytes;
};
const Case kCases[] = {{0, 1 << 30},       {1, 1 << 30}, {37, 1 << 30}, {100'003, 1 << 30},
                       {400'001, 1 << 30}, {37, 24},     {1000, 8},     {100'003, 4096}};

template <typename T>
class Reductions : public testing::Test {};
using ReducedTypes = testing::Types<float, double, std::int64_t, std::int32_t>;
TYPED_TEST_SUITE(Reductions, ReducedTypes);

TYPED_TEST(Reductions, EqualTheSerialOnes) {
  for (const auto& [size, chunk_bytes] : kCases)
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
      const ChunkSize chunks(chunk_bytes);
      const auto expected = reduced<TypeParam>(size, op);
      auto data = data_of<TypeParam>(world().rank(), size);
      world().all_reduce(std::span<TypeParam>(data), op, "test");
      EXPECT_EQ(data, expected) << size << " elements, chunks of " << chunk_bytes;

      const int root = world().size() - 1;
      data = data_of<TypeParam>(world().rank(), size);
      world().reduce(std::span<TypeParam>(data), op, root, "test");
      EXPECT_EQ(data, world().rank() == root ? expected : data_of<TypeParam>(world().rank(), size));
    }
}

template <typename T>
class Movement : public testing::Test {};
using MovedTypes = testing::Types<float, std::int64_t, std::uint8_t, char>;
TYPED_TEST_SUITE(Movement, MovedTypes);

TYPED_TEST(Movement, EqualsTheSerialOne) {
  using T = TypeParam;
  const int ranks = world().size(), rank = world().rank(), root = ranks / 2;
  for (const auto& [size, chunk_bytes] : kCases) {
    const ChunkSize chunks(chunk_bytes);
    SCOPED_TRACE(testing::Message() << size << " elements, chunks of " << chunk_bytes);
    auto data = data_of<T>(rank, size);
    world().broadcast(std::span<T>(data), root, "test");
    EXPECT_EQ(data, data_of<T>(root, size));

    // `all` holds the data of every rank. `uneven` holds parts of these data, with a different
    // length for each rank and nothing of rank 1.
    std::vector<T> all, uneven;
    std::vector<std::int64_t> counts;
    for (int r = 0; r < ranks; ++r) {
      const auto theirs = data_of<T>(r, size);
      all.insert(all.end(), theirs.begin(), theirs.end());
      counts.push_back(r == 1 ? 0 : static_cast<std::int64_t>(size) / (r + 1));
      uneven.insert(uneven.end(), theirs.begin(), theirs.begin() + counts.back());
    }
    const auto mine = data_of<T>(rank, size);
    std::vector<T> gathered(all.size());
    world().all_gather(std::span<const T>(mine), std::span<T>(gathered), "test");
    EXPECT_EQ(gathered, all);

    gathered.assign(rank == root ? all.size() : 0, T{});
    world().gather(std::span<const T>(mine), std::span<T>(gathered), root, "test");
    EXPECT_EQ(gathered, rank == root ? all : std::vector<T>());

    const std::vector<T> share(mine.begin(), mine.begin() + counts[static_cast<std::size_t>(rank)]);
    gathered.assign(rank == root ? uneven.size() : 0, T{});
    world().gatherv(std::span<const T>(share), std::span<T>(gathered), counts, root, "test");
    EXPECT_EQ(gathered, rank == root ? uneven : std::vector<T>());

    std::vector<T> received(share.size());
    world().scatterv(std::span<const T>(uneven), counts, std::span<T>(received), root, "test");
    EXPECT_EQ(received, share);
  }
}

TEST(Collectives, MoveTextOfDifferentLengths) {
  const auto text_of = [](int rank) { return std::string(static_cast<std::size_t>(rank * 5), 'a' + rank); };
  EXPECT_EQ(world().broadcast(world().rank() == 0 ? "from rank 0" : "other", 0, "test"), "from rank 0");
  const auto texts = world().gather(text_of(world().rank()), 0, "test");
  ASSERT_EQ(texts.size(), world().rank() == 0 ? static_cast<std::size_t>(world().size()) : 0u);
  for (int rank = 0; rank < static_cast<int>(texts.size()); ++rank) EXPECT_EQ(texts[rank], text_of(rank));
}

TEST(Collectives, SplitByColourAndOrder) {
  const int rank = world().rank(), ranks = world().size();
  const Communicator half = world().split(rank % 2, -rank, "halves");
  EXPECT_EQ(half.size(), (ranks + (rank % 2 == 0)) / 2);
  // Ranks are in reverse order in the new communicator, so its rank 0 is the highest rank of its
  // colour.
  std::int32_t first = rank;
  half.broadcast(std::span<std::int32_t>(&first, 1), 0, "test");
  EXPECT_EQ(first % 2, rank % 2);
  EXPECT_GE(first, rank);
  EXPECT_EQ(half.world_ranks()[static_cast<std::size_t>(half.rank())], rank);

  const Communicator host = world().split_by_host("host");
  EXPECT_EQ(host.size(), world().local_size());
  EXPECT_EQ(host.rank(), world().local_rank());
  const Communicator copy = world().duplicate("copy");
  EXPECT_NE(copy.key(), half.key());
  EXPECT_NE(copy.key(), world().key());
  EXPECT_EQ(copy.all_reduce(std::int64_t{copy.rank()}, ReduceOp::sum, "test"), ranks * (ranks - 1) / 2);
}

TEST(Collectives, RefuseWrongArgumentsBeforeAnythingIsSent) {
  std::vector<float> data(4), all(4 * static_cast<std::size_t>(world().size()) + 1);
  EXPECT_THROW(world().broadcast(std::span<float>(data), world().size(), "test"), std::invalid_argument);
  EXPECT_THROW(world().broadcast(std::span<float>(data), -1, "test"), std::invalid_argument);
  EXPECT_THROW(world().reduce(std::span<float>(data), ReduceOp::sum, -2, "test"), std::invalid_argument);
  EXPECT_THROW(world().all_reduce(std::span<float>(static_cast<float*>(nullptr), 4), ReduceOp::sum, "test"),
               std::invalid_argument);
  EXPECT_THROW(world().all_gather(std::span<const float>(data), std::span<float>(all), "test"),
               std::invalid_argument);
  std::vector<std::byte> bytes(4);
  EXPECT_THROW(world().all_reduce(std::span<std::byte>(bytes), ReduceOp::max, "test"), std::invalid_argument);
  if (world().rank() == 0) {
    const std::vector<std::int64_t> few(static_cast<std::size_t>(world().size()) - 1, 4);
    EXPECT_THROW(world().scatterv(std::span<const float>(all), few, std::span<float>(data), 0, "test"),
                 std::invalid_argument);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(world().size()), 4);
    EXPECT_THROW(world().scatterv(std::span<const float>(all), counts, std::span<float>(data), 0, "test"),
                 std::invalid_argument)
        << "the counts do not add up to the buffer";
  }
  try {
    world().broadcast(std::span<float>(data), 99, "running mean");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("broadcast running mean on world: root 99"), std::string::npos)
        << error.what();
  }
}

// A connection to a rank that has died behaves like this pipe. The survivor must live on to report
// the death.
TEST(Environment, WritingToAClosedPipeDoesNotEndTheRank) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  EXPECT_EQ(::write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  ::close(ends[1]);
}

// Jobs that share a device run in threads of one process. Each makes communicators of its one rank.
TEST(Communicator, IsMadeAndFreedInSeveralThreads) {
  constexpr int kThreads = 8, kTurns = 300;
  const Communicator alone = world().split(world().rank(), 0, "alone");
  std::vector<std::vector<std::uint64_t>> keys(kThreads);
  std::barrier all_threads(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<std::uint64_t>& own : keys)
    threads.emplace_back([&] {
      all_threads.arrive_and_wait();
      for (int turn = 0; turn < kTurns; ++turn) own.push_back(alone.duplicate("of a job").key());
    });
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint64_t> all;
  for (const std::vector<std::uint64_t>& own : keys) all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), std::size_t{kThreads * kTurns}) << "each communicator has a key of its own";
}

}  // namespace
}  // namespace convoy::comm
