// Tests that the gradients of a batch's parts add up to the gradient of the whole batch.
#include "kernels/accumulate/accumulate.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

Case accumulation(Random& random, std::int64_t count, int part) {
  Case test{.name = "accumulate_gradients",
            .maker = [](Backend b, KernelRequest& request) { return accumulate_gradients(b, {}, request); },
            .inputs = {random.uniform({count}), random.uniform({count})},
            .outputs = {f32({count})}};
  test.control.part = part;
  test.control.share = 0.375f;
  return test;
}

TEST(Accumulate, MatchesTheReference) {
  Random random(1);
  for (const std::int64_t count : {1, 7, 4096, 16385, 100001})
    for (const int part : {0, 1, 5}) expect_matches_reference(accumulation(random, count, part));
}

TEST(Accumulate, TheFirstPartNeedsNoZeros) {
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    Random random(2);
    Case test = accumulation(random, 3, 0);
    test.inputs = {floats({3}, {std::numeric_limits<double>::quiet_NaN(), 7, 7}), floats({3}, {8, -16, 0})};
    EXPECT_EQ(run(b, Layout::row_major, test).outputs[0].values, (std::vector<double>{3, -6, 0}));
    test.control.part = 1;
    test.inputs[0] = floats({3}, {1, 2, 3});
    EXPECT_EQ(run(b, Layout::row_major, test).outputs[0].values, (std::vector<double>{4, -4, 3}));
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
