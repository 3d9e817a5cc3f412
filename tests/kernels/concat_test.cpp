// Tests concatenation along the channels.
#include "kernels/concat/concat.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

Shape with_channels(Shape shape, std::int64_t channels) {
  shape[1] = channels;
  return shape;
}

std::int64_t sum(const std::vector<std::int64_t>& channels) {
  std::int64_t total = 0;
  for (const std::int64_t c : channels) total += c;
  return total;
}

Case concat(Random& random, const Shape& shape, const std::vector<std::int64_t>& channels) {
  Case test{
      .name = "concat_forward " + shape.to_string(),
      .maker = [](Backend backend, KernelRequest& request) { return concat_forward(backend, {}, request); },
      .outputs = {f32(with_channels(shape, sum(channels)))},
      .tolerance = 0};
  for (const std::int64_t c : channels) test.inputs.push_back(random.uniform(with_channels(shape, c)));
  return test;
}

Case split(Tensor dy, const std::vector<std::int64_t>& channels) {
  const Shape shape = dy.desc.shape;
  Case test{
      .name = "concat_backward " + shape.to_string(),
      .maker = [](Backend backend, KernelRequest& request) { return concat_backward(backend, {}, request); },
      .inputs = {std::move(dy)},
      .tolerance = 0};
  for (const std::int64_t c : channels) test.outputs.push_back(f32(with_channels(shape, c)));
  return test;
}

// Some of these channel counts fill whole blocks of a blocked layout. Others do not, so that blocks
// of the result come from several parts.
const std::vector<std::vector<std::int64_t>> kChannels = {{16, 32, 48}, {32, 7}, {3, 5, 20, 1}, {16, 8, 24},
                                                          {40, 40},     {5},     {58, 58}};

TEST(Concat, MatchesTheReference) {
  Random random(1);
  for (const Shape& shape : {Shape{2, 0, 5, 7}, Shape{3, 0, 9, 9}, Shape{3, 0, 1, 1}, Shape{3, 0}})
    for (const auto& channels : kChannels) {
      expect_matches_reference(concat(random, shape, channels));
      expect_matches_reference(split(random.uniform(with_channels(shape, sum(channels))), channels));
    }
}

TEST(Concat, BackwardIsTheDerivative) {
  Random random(2);
  const std::vector<std::int64_t> channels = {2, 3, 1};
  const Case forward = concat(random, {2, 0, 2, 3}, channels);
  const Tensor dy = random.uniform({2, 6, 2, 3});
  const Result gradients = run_reference(split(dy, channels));
  for (int part = 0; part < 3; ++part)
    expect_gradient(gradients.outputs[part].values, central_differences(forward, part, {dy.values}),
                    "concat");
}

TEST(Concat, RefusesPartsThatDoNotMakeTheWhole) {
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    KernelRequest request;
    request.inputs = {f32({2, 3, 4, 4}), f32({2, 3, 4, 5})};
    for (TensorDesc& desc : request.inputs) desc.layout = Layout::row_major;
    request.outputs = {f32({2, 6, 4, 4})};
    EXPECT_THROW(concat_forward(backend, {}, request), std::invalid_argument) << name_of(backend);
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
