// Tests the search for the largest batch or image that is within a memory limit.
#include "app/commands/info_within.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace convoy::app {
namespace {

// Values that grow about as number^power, with steps and with a part that does not depend on the
// number, as memory does.
std::int64_t bytes_of(std::int64_t number, int power) {
  const std::int64_t grown = power == 1 ? number : number * number;
  return 500'000 + 3'000 * grown + grown / 700 * 1'000;
}

TEST(LargestWithin, FindsTheLargestNumberInFewSteps) {
  for (const int power : {1, 2})
    for (const std::int64_t step : {1, 32}) {
      int values = 0;
      LargestWithin search(
          [&](std::int64_t number) {
            ++values;
            return bytes_of(number, power);
          },
          power);
      constexpr std::int64_t kMost = 1 << 13;
      for (const std::int64_t limit :
           std::initializer_list<std::int64_t>{1'000'000, 5'000'000, 80'000'000, 3'000'000'000}) {
        std::int64_t largest = 0;
        for (std::int64_t number = step; number <= kMost; number += step)
          if (bytes_of(number, power) <= limit) largest = number;
        const std::int64_t found = search.find(limit, 224, step, kMost);
        EXPECT_LE(found, largest);
        EXPECT_GE(found, largest - std::max(step, largest / 50)) << limit << ", power " << power;
        EXPECT_EQ(found % step, 0);
      }
      EXPECT_LE(values, 50);
      EXPECT_EQ(search.find(100'000, 224, step, kMost), 0) << "nothing fits";
    }
}

// A kernel may be unable to take large numbers.
TEST(LargestWithin, ANumberThatCannotBeIsTooLarge) {
  LargestWithin search(
      [](std::int64_t number) {
        if (number > 100) throw std::runtime_error("too large");
        return number;
      },
      1);
  const std::int64_t found = search.find(1'000'000, 32, 1, 1 << 13);
  EXPECT_LE(found, 100);
  EXPECT_GE(found, 98);
}

}  // namespace
}  // namespace convoy::app
