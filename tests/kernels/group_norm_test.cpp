#include "kernels/group_norm/group_norm.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "tests/kernels/harness.h"
#include "tests/kernels/moments.h"

namespace convoy::kernels::testing {
namespace {

Case group_norm(int groups, Tensor x, Tensor gamma, Tensor beta) {
  const Shape shape = x.desc.shape;
  return {.name = "group_norm_forward " + shape.to_string() + " in " + std::to_string(groups),
          .maker =
              [=](Backend backend, KernelRequest& request) {
                return group_norm_forward(backend, {groups, 1e-3f}, request);
              },
          .inputs = {std::move(x), std::move(gamma), std::move(beta)},
          .outputs = {f32(shape), f32({2 * shape[0] * groups})},
          .tolerance = 2e-6};
}

Case group_norm_gradient(int groups, Tensor x, Tensor gamma, Tensor dy, Tensor moments) {
  const Shape shape = x.desc.shape, channels = gamma.desc.shape;
  return {.name = "group_norm_backward " + shape.to_string() + " in " + std::to_string(groups),
          .maker = [=](Backend backend,
                       KernelRequest& request) { return group_norm_backward(backend, {groups}, request); },
          .inputs = {std::move(x), std::move(gamma), std::move(dy), std::move(moments)},
          .outputs = {f32(shape), f32(channels), f32(channels)},
          .tolerance = 3e-6};
}

TEST(GroupNorm, KeepsTheVarianceFarFromZero) {
  expect_moments_far_from_zero(
      [](const Tensor& x, const Tensor& gamma, const Tensor& beta) { return group_norm(4, x, gamma, beta); });
}

// There are groups of whole blocks of channels, of parts of a block, of channels from two blocks,
// of a single channel, and of all channels.
TEST(GroupNorm, MatchesTheReference) {
  Random random(4);
  for (const auto& [shape, groups] : {std::pair{Shape{2, 6, 5, 7}, 3},
                                      {Shape{2, 96, 7, 7}, 32},
                                      {Shape{3, 33, 4, 4}, 11},
                                      {Shape{1, 64, 20, 33}, 2},
                                      {Shape{5, 36}, 6},
                                      {Shape{2, 24, 9, 3}, 1},
                                      {Shape{2, 20, 9, 3}, 20},
                                      {Shape{300, 16, 2, 2}, 4}}) {
    const Tensor x = random.uniform(shape, -1, 3), gamma = random.uniform({shape[1]}, 0.5, 2);
    const Case forward = group_norm(groups, x, gamma, random.uniform({shape[1]}));
    expect_matches_reference(forward);
    expect_matches_reference(
        group_norm_gradient(groups, x, gamma, random.uniform(shape), moments_of(forward)));
  }
}

TEST(GroupNorm, BackwardIsTheDerivative) {
  Random random(5);
  const Shape shape{2, 6, 2, 3};
  const Case forward =
      group_norm(2, random.uniform(shape, -2, 2), random.uniform({6}, 0.5, 2), random.uniform({6}));
  const Tensor dy = random.uniform(shape);
  const Result gradient =
      run_reference(group_norm_gradient(2, forward.inputs[0], forward.inputs[1], dy, moments_of(forward)));
  for (int i = 0; i < 3; ++i)
    expect_gradient(gradient.outputs[i].values, central_differences(forward, i, {dy.values}), "group_norm");
}

TEST(GroupNorm, RefusesGroupsThatDoNotDivideTheChannels) {
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    KernelRequest request{{f32({2, 6, 4, 4}), f32({6}), f32({6})}, {f32({2, 6, 4, 4}), f32({16})}};
    request.inputs[0].layout = Layout::row_major;
    EXPECT_THROW(group_norm_forward(backend, {4}, request), std::invalid_argument) << name_of(backend);
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
