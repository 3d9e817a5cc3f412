#include "app/training/report/bottleneck.h"

#include <gtest/gtest.h>

namespace convoy::app {
namespace {

RankTimes rank(double compute, double exposed, double data) {
  return {compute + exposed + data, compute, exposed, data};
}

// All ranks take 10 ms for a step. Rank 2 computes for 9 ms. The others compute for 4 ms and wait
// for rank 2, which they measure as 6 ms of communication.
TEST(Bottleneck, TheWaitForASlowRankIsNotCommunication) {
  const std::vector<RankTimes> ranks{rank(4, 6, 0), rank(4, 6, 0), rank(9, 1, 0), rank(4, 6, 0)};
  const Bottleneck b = find_bottleneck(ranks);
  EXPECT_DOUBLE_EQ(b.communication_ms, 1);
  EXPECT_DOUBLE_EQ(b.compute_ms, 4);
  EXPECT_DOUBLE_EQ(b.stragglers_ms, 5);
  EXPECT_EQ(b.limit, "stragglers");
  EXPECT_EQ(b.slowest_rank, 2);
  EXPECT_FALSE(b.slowest_awaits_data);
  const std::vector<RankPlace> places{{"a", "cpu", {}}, {"a", "cpu", {}}, {"b", "cpu", {}}, {"b", "cpu", {}}};
  const std::string line = describe(b, places);
  EXPECT_EQ(line,
            "limited by stragglers: 50 % of a step of 10.00 ms; compute 40 %, exposed communication 10 %, "
            "input 0 % "
            "(slowest: rank 2 on b, 5.00 ms behind the median)");
}

TEST(Bottleneck, PartsMakeTheStep) {
  for (const auto& ranks :
       {std::vector<RankTimes>{rank(7, 2, 1), rank(6, 3, 1), rank(5, 1, 4)},
        std::vector<RankTimes>{rank(2, 8, 0), rank(1, 9, 0)}, std::vector<RankTimes>{rank(3, 0, 7)}}) {
    const Bottleneck b = find_bottleneck(ranks);
    EXPECT_NEAR(b.compute_ms + b.communication_ms + b.input_ms + b.stragglers_ms, b.step_ms, 1e-9);
  }
}

TEST(Bottleneck, NamesTheLargestPart) {
  EXPECT_EQ(find_bottleneck(std::vector{rank(9, 1, 0), rank(9, 1, 0)}).limit, "compute");
  EXPECT_EQ(find_bottleneck(std::vector{rank(2, 8, 0), rank(2, 8, 0)}).limit, "communication");
  EXPECT_EQ(find_bottleneck(std::vector{rank(2, 1, 7), rank(2, 1, 7)}).limit, "input");
}

TEST(Bottleneck, SaysWhenTheSlowestRankWaitsForItsData) {
  const Bottleneck b = find_bottleneck(std::vector{rank(2, 8, 0), rank(2, 8, 0), rank(2, 1, 7)});
  EXPECT_EQ(b.limit, "stragglers");
  EXPECT_EQ(b.slowest_rank, 2);
  EXPECT_TRUE(b.slowest_awaits_data);
}

}  // namespace
}  // namespace convoy::app
