// Tests the search for the largest batch or image that is within a memory limit.
#include "app/commands/info_within.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace convoy::app {
namespace {

// Returns made-up bytes of memory for a batch of `number` samples or an image with the side
// `number`: a constant plus a part that grows about as number^power, partly in steps.
std::int64_t bytes_of(std::int64_t number, int power) {
  const std::int64_t grown = power == 1 ? number : number * number;
  return 500'000 + 3'000 * grown + grown / 700 * 1'000;
}

TEST(LargestWithin, FindsTheLargestNumberInFewSteps) {
  for (const int power : {1, 2})
    for (const std::int64_t step : {1, 32}) {
      int values = 0;
      constexpr std::int64_t kMost = 1 << 13;
      LargestWithin search(
          [&](std::int64_t number) {
            ++values;
            return bytes_of(number, power);
          },
          {.step = step, .most = kMost, .power = power});
      for (const std::int64_t limit :
           std::initializer_list<std::int64_t>{1'000'000, 5'000'000, 80'000'000, 3'000'000'000}) {
        std::int64_t largest = 0;
        for (std::int64_t number = step; number <= kMost; number += step)
          if (bytes_of(number, power) <= limit) largest = number;
        const LargestWithin::Found found = search.find(limit, 224);
        EXPECT_LE(found.number, largest);
        EXPECT_GE(found.number, largest - std::max(step, largest / 50)) << limit << ", power " << power;
        EXPECT_EQ(found.number % step, 0);
        EXPECT_EQ(found.bound.empty(), largest < kMost - std::max(step, kMost / 50)) << found.bound;
      }
      EXPECT_LE(values, 50);
      EXPECT_EQ(search.find(100'000, 224).number, 0) << "nothing fits";
    }
}

// A kernel may throw for large batches or images. The result must say why larger numbers are
// impossible.
TEST(LargestWithin, SaysWhatMakesLargerNumbersImpossible) {
  LargestWithin search(
      [](std::int64_t number) {
        if (number > 100) throw std::runtime_error("too large");
        return number;
      },
      {.most = 1 << 13});
  EXPECT_EQ(search.find(50, 32).bound, "");
  const LargestWithin::Found found = search.find(1'000'000, 32);
  EXPECT_LE(found.number, 100);
  EXPECT_GE(found.number, 98);
  EXPECT_EQ(found.bound, "too large");
}

// Only image sizes that are multiples of 224 are possible here, as for VGG. A higher memory limit
// must never give a smaller size.
TEST(LargestWithin, SkipsNumbersThatAreImpossible) {
  LargestWithin search([](std::int64_t number) { return bytes_of(number, 2); },
                       {.step = 32, .most = 1 << 13, .power = 2, .possible = [](std::int64_t number) {
                          return number % 224 == 0;
                        }});
  std::int64_t before = 0;
  for (std::int64_t limit = 1 << 20; limit < std::int64_t{1} << 38; limit += limit / 7) {
    std::int64_t largest = 0;
    for (std::int64_t number = 224; number <= 1 << 13; number += 224)
      if (bytes_of(number, 2) <= limit) largest = number;
    const std::int64_t found = search.find(limit, 224).number;
    EXPECT_EQ(found, largest) << limit;
    EXPECT_GE(found, before);
    before = found;
  }
}

}  // namespace
}  // namespace convoy::app
