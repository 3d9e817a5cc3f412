// Tests that more time for the search never gives a longer schedule than the search without a time
// limit, which is limited in work.
#include <gtest/gtest.h>

#include "partition/memory/overflow.h"
#include "partition/partition.h"
#include "tests/partition/graphs.h"

namespace convoy::partition {
namespace {

PartitionOptions little_work() {
  PartitionOptions options;
  options.search_work = 20'000'000;
  return options;
}

// Searches without a time limit, and then with a limit of three times the time that this took. The
// second search must not give a longer schedule.
void expect_no_longer(const CostModel& cost) {
  PartitionOptions options = little_work();
  const auto begin = std::chrono::steady_clock::now();
  const PartitionResult without = partition_graph(cost, options);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  options.time_limit = 3 * taken + std::chrono::milliseconds(50);
  const PartitionResult with = partition_graph(cost, options);
  ASSERT_TRUE(without.placement);
  ASSERT_TRUE(with.placement);
  EXPECT_LE(with.simulation.makespan, without.simulation.makespan);
  EXPECT_GT(with.improvement.tried, without.improvement.tried) << "the rest of the time is not used";
  EXPECT_EQ(memory_overflow(cost.machine(), simulate(cost, *with.placement)), 0);
}

TaskGraph graph_of_seed(std::uint64_t seed) {
  return testing::random_graph(seed, {.nodes = 200, .edge_share = 0.02});
}

TEST(TimeLimit, NeverLengthensTheSchedule) {
  for (const std::uint64_t seed : {6, 8, 9, 10}) {
    SCOPED_TRACE(seed);
    const TaskGraph graph = graph_of_seed(seed);
    Machine machine = Machine::uniform(4, {100'000, 5});
    machine.set_contention(seed % 2 == 0);
    expect_no_longer(CostModel(graph, machine));
  }
}

TEST(TimeLimit, NeverLengthensTheScheduleUnderMemoryLimits) {
  for (const std::uint64_t seed : {10, 12}) {
    SCOPED_TRACE(seed);
    const TaskGraph graph = graph_of_seed(seed);
    Machine machine = Machine::uniform(4, {100'000, 5});
    const Bytes floor = memory_floor(CostModel(graph, machine), Units(graph, 4));
    for (DeviceIndex device = 0; device < 4; ++device) machine.device(device).memory_limit = 4 * floor;
    machine.set_contention(seed % 2 == 0);
    expect_no_longer(CostModel(graph, machine));
  }
}

// Only the fastest algorithm may run if the time limit has passed by then.
TEST(TimeLimit, LeavesOutAlgorithmsThatTakeTooLong) {
  const TaskGraph graph = graph_of_seed(6);
  const Machine machine = Machine::uniform(4, {100'000, 5});
  const CostModel cost(graph, machine);
  const auto candidates_within = [&](double seconds) {
    PartitionOptions options = little_work();
    options.time_limit = std::chrono::duration<double>(seconds);
    options.move_limit = 1;
    std::vector<Algorithm> algorithms;
    const PartitionResult result = partition_graph(cost, options);
    for (const Candidate& candidate : result.candidates)
      if (candidate.algorithm != Algorithm::kImprove) algorithms.push_back(candidate.algorithm);
    return algorithms;
  };
  EXPECT_EQ(candidates_within(1e-9), std::vector<Algorithm>{Algorithm::kContiguous});
  EXPECT_EQ(candidates_within(1000).size(), 6u);
}

// A number of moves ends the search. So the partitioner must not go on until the deadline.
TEST(TimeLimit, IsNotWaitedForIfMovesEndTheSearch) {
  const TaskGraph graph = graph_of_seed(6);
  PartitionOptions options;
  options.move_limit = 10;
  options.time_limit = std::chrono::seconds(20);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(partition_graph(CostModel(graph, Machine::uniform(4, {100'000, 5})), options).placement);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace convoy::partition
