// Tests slices and shuffles of channels, padding and softmax.
#include "kernels/channels/channels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "kernels/pad/pad.h"
#include "kernels/softmax/softmax.h"
#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

template <typename Problem>
Case case_of(const char* name, Kernel (*maker)(Backend, const Problem&, KernelRequest&), Problem problem,
             std::vector<Tensor> inputs, const Shape& output, double tolerance = 0) {
  return {.name = std::string(name) + " " + inputs[0].desc.shape.to_string() + " to " + output.to_string(),
          .maker = [=](Backend backend, KernelRequest& request) { return maker(backend, problem, request); },
          .inputs = std::move(inputs),
          .outputs = {f32(output)},
          .tolerance = tolerance};
}

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

const std::vector<PadProblem> kPads = {{1, 1, 1, 1},      {0, 1, 0, 1, 0.5f}, {2, 0, 0, 3, -1},
                                       {-1, 2, 1, -2, 7}, {-1, -1, -1, -1},   {0, 0, 0, 0}};

TEST(Pad, MatchesTheReference) {
  Random random(5);
  for (const PadProblem& problem : kPads)
    for (const Shape& shape : {Shape{2, 16, 5, 7}, Shape{3, 33, 4, 4}, Shape{1, 3, 4, 9}}) {
      const Shape y = pad_output_shape(problem, shape);
      expect_matches_reference(case_of("pad_forward", pad_forward, problem, {random.uniform(shape)}, y));
      expect_matches_reference(case_of("pad_backward", pad_backward, problem, {random.uniform(y)}, shape));
    }
}

TEST(Pad, PutsTheValueAroundTheImage) {
  const Tensor x = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  const PadProblem problem{.top = 1, .right = 1, .value = 9};
  EXPECT_EQ(run_reference(case_of("", pad_forward, problem, {x}, {1, 1, 3, 3})).outputs[0].values,
            (std::vector<double>{9, 9, 9, 1, 2, 9, 3, 4, 9}));
  EXPECT_THROW(pad_output_shape({.top = -2}, x.desc.shape), std::invalid_argument);
}

TEST(Pad, BackwardIsTheDerivative) {
  Random random(6);
  for (const PadProblem& problem : kPads) {
    const Shape shape{2, 2, 3, 4}, y = pad_output_shape(problem, shape);
    const Case forward = case_of("pad", pad_forward, problem, {random.uniform(shape)}, y);
    const Tensor dy = random.uniform(y);
    const Tensor dx = run_reference(case_of("", pad_backward, problem, {dy}, shape)).outputs[0];
    expect_gradient(dx.values, central_differences(forward, 0, {dy.values}), "pad");
  }
}

TEST(Softmax, MatchesTheReference) {
  Random random(7);
  for (const Shape& shape : {Shape{5, 1000}, Shape{3, 37}, Shape{2, 16, 5, 7}, Shape{3, 33, 4, 4},
                             Shape{300, 8}, Shape{2, 24, 3, 3}}) {
    expect_matches_reference(case_of("softmax_forward", softmax_forward, SoftmaxProblem{},
                                     {random.uniform(shape, -150, 150)}, shape, 2e-6));
    expect_matches_reference(case_of("softmax_backward", softmax_backward, SoftmaxProblem{},
                                     {random.uniform(shape, 0, 1), random.uniform(shape)}, shape, 2e-6));
  }
}

TEST(Softmax, BackwardIsTheDerivative) {
  Random random(8);
  const Shape shape{2, 5, 2, 1};
  const Case forward = case_of("", softmax_forward, SoftmaxProblem{}, {random.uniform(shape, -2, 2)}, shape);
  const Tensor dy = random.uniform(shape), y = run_reference(forward).outputs[0];
  const Tensor dx =
      run_reference(case_of("", softmax_backward, SoftmaxProblem{}, {floats(shape, y.values), dy}, shape))
          .outputs[0];
  expect_gradient(dx.values, central_differences(forward, 0, {dy.values}), "softmax");
}

TEST(Softmax, SumsToOne) {
  const Tensor y = run_reference(case_of("", softmax_forward, SoftmaxProblem{},
                                         {Random(9).uniform({1, 50}, -100, 100)}, {1, 50}))
                       .outputs[0];
  double sum = 0;
  for (const double value : y.values) sum += value;
  EXPECT_NEAR(sum, 1, 1e-6);
}

}  // namespace
}  // namespace convoy::kernels::testing
