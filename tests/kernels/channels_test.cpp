// Tests slices and shuffles of channels.
#include "kernels/channels/channels.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

Shape with_channels(Shape shape, std::int64_t channels) {
  shape[1] = channels;
  return shape;
}

// Some slices begin and end at multiples of 2, 4, 8 or more channels, others do not.
TEST(Slice, MatchesTheReference) {
  Random random(1);
  struct Part {
    Shape whole;
    std::int64_t begin, channels;
  };
  for (const auto& [whole, begin, channels] :
       {Part{{2, 48, 5, 7}, 16, 32}, Part{{2, 58, 4, 4}, 29, 29}, Part{{3, 33, 1, 1}, 3, 8},
        Part{{3, 64}, 8, 40}, Part{{2, 40, 3, 3}, 0, 40}, Part{{2, 40, 3, 3}, 32, 8},
        Part{{2, 40, 3, 3}, 16, 5}, Part{{5, 7}, 6, 1}, Part{{2, 24, 3, 2}, 8, 16},
        Part{{2, 116, 4, 2}, 58, 58}, Part{{3, 28, 2, 2}, 12, 12}}) {
    const Shape part = with_channels(whole, channels);
    const SliceProblem problem{begin};
    expect_matches_reference(case_of("slice_forward", slice_forward, problem, {random.uniform(whole)}, part));
    expect_matches_reference(
        case_of("slice_backward", slice_backward, problem, {random.uniform(part)}, whole));
  }
}

TEST(Slice, BackwardIsTheDerivative) {
  Random random(2);
  const Shape whole{2, 5, 2, 2}, part{2, 2, 2, 2};
  const Case forward =
      case_of("slice_forward", slice_forward, SliceProblem{2}, {random.uniform(whole)}, part);
  const Tensor dy = random.uniform(part);
  const Tensor dx = run_reference(case_of("", slice_backward, SliceProblem{2}, {dy}, whole)).outputs[0];
  expect_gradient(dx.values, central_differences(forward, 0, {dy.values}), "slice");
}

TEST(Slice, RefusesChannelsThatAreNotThere) {
  for (const Backend backend : {Backend::reference, Backend::cpu})
    for (const std::int64_t begin : {-1, 3}) {
      KernelRequest request{{f32({2, 4})}, {f32({2, 2})}};
      EXPECT_THROW(slice_forward(backend, {begin}, request), std::invalid_argument) << name_of(backend);
    }
}

TEST(ChannelShuffle, MatchesTheReference) {
  Random random(3);
  for (const auto& [shape, groups] : {std::pair{Shape{2, 48, 5, 7}, 2},
                                      {Shape{2, 116, 4, 4}, 2},
                                      {Shape{3, 33, 2, 2}, 11},
                                      {Shape{3, 24}, 3},
                                      {Shape{2, 10, 3, 3}, 1},
                                      {Shape{2, 10, 3, 3}, 10}})
    expect_matches_reference(
        case_of("channel_shuffle", channel_shuffle, ShuffleProblem{groups}, {random.uniform(shape)}, shape));
}

TEST(ChannelShuffle, IsUndoneByTheShuffleOfTheOtherDivisor) {
  const Tensor x = floats({1, 6}, {0, 1, 2, 3, 4, 5});
  const Tensor y = run_reference(case_of("", channel_shuffle, ShuffleProblem{2}, {x}, {1, 6})).outputs[0];
  EXPECT_EQ(y.values, (std::vector<double>{0, 3, 1, 4, 2, 5}));
  const Tensor back = floats({1, 6}, y.values);
  EXPECT_EQ(run_reference(case_of("", channel_shuffle, ShuffleProblem{3}, {back}, {1, 6})).outputs[0].values,
            x.values);
}

TEST(ChannelShuffle, BackwardIsTheDerivative) {
  Random random(4);
  const Shape shape{2, 6, 2, 2};
  const Case forward = case_of("", channel_shuffle, ShuffleProblem{2}, {random.uniform(shape)}, shape);
  const Tensor dy = random.uniform(shape);
  const Tensor dx = run_reference(case_of("", channel_shuffle, ShuffleProblem{3}, {dy}, shape)).outputs[0];
  expect_gradient(dx.values, central_differences(forward, 0, {dy.values}), "channel_shuffle");
}

}  // namespace
}  // namespace convoy::kernels::testing
