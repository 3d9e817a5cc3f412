// Tests the order in which the parts of a job's state are copied to the device.
#include "app/sharing/copy_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace convoy::app {
namespace {

constexpr std::int64_t kPage = 4096;

class SharedDeviceCopyPlan : public testing::Test {
 protected:
  static MemoryRange range(std::int64_t first_page, std::int64_t pages) {
    return {memory_ + first_page * kPage, pages * kPage};
  }
  static inline std::byte memory_[64 * kPage];
};

TEST_F(SharedDeviceCopyPlan, WhatIsUsedFirstComesFirst) {
  const std::vector<MemoryRange> used{range(6, 2), range(1, 1), range(5, 3)};
  const std::vector<CopyGroup> groups = plan_copies(range(0, 10), used, 1);
  const std::vector<CopyGroup> expected{{range(6, 2)}, {range(1, 1)}, {range(5, 1)},
                                        {range(0, 1)}, {range(2, 3)}, {range(8, 2)}};
  EXPECT_EQ(groups, expected);
}

TEST_F(SharedDeviceCopyPlan, SmallRangesArriveTogether) {
  const std::vector<MemoryRange> used{range(6, 2), range(1, 1), range(2, 1), range(5, 1)};
  const std::vector<CopyGroup> groups = plan_copies(range(0, 10), used, 3 * kPage);
  const std::vector<CopyGroup> expected{
      {range(6, 2), range(1, 1)}, {range(2, 1), range(5, 1)}, {range(0, 1), range(3, 2)}, {range(8, 2)}};
  EXPECT_EQ(groups, expected);
}

TEST_F(SharedDeviceCopyPlan, EveryByteIsCopiedOnce) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    const MemoryRange state{memory_, 60 * kPage - static_cast<std::int64_t>(random() % 5000)};
    std::vector<MemoryRange> used;
    for (int i = 0; i < 20; ++i)
      used.push_back({memory_ + random() % (60 * kPage), static_cast<std::int64_t>(random() % (6 * kPage))});
    std::vector<int> copies(static_cast<std::size_t>(state.bytes));
    for (const CopyGroup& group : plan_copies(state, used, random() % (9 * kPage)))
      for (const MemoryRange& one : group)
        for (std::int64_t i = 0; i < one.bytes; ++i)
          ++copies.at(static_cast<std::size_t>(one.first() - state.first() + i));
    EXPECT_EQ(std::ranges::count(copies, 1), state.bytes);
  }
}

}  // namespace
}  // namespace convoy::app
