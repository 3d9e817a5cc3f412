#include "kernels/add/add.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/kernels/harness.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

TEST(Add, MatchesTheReference) {
  Random random(4);
  for (const Shape& shape : kElementwiseShapes)
    for (int count = 2; count <= 5; ++count) {
      std::vector<Tensor> inputs;
      for (int i = 0; i < count; ++i) inputs.push_back(random.uniform(shape));
      expect_matches_reference(
          {.name = "add_forward " + shape.to_string(),
           .maker = [](Backend backend, KernelRequest& request) { return add_forward(backend, {}, request); },
           .inputs = inputs,
           .outputs = {f32(shape)},
           .tolerance = 2e-7});
    }
}

// The sums for a batch norm must be those of y as it is stored (rounded), without the padding
// samples at the end of the batch. y itself must have all samples.
TEST(Add, StatisticsAreThoseOfWhatWasWritten) {
  Random random(6);
  for (const Shape& shape : {Shape{3, 64, 14, 14}, Shape{20, 160, 9, 7}, Shape{5, 21, 3, 3}, Shape{300, 40}})
    for (const int count : {2, 3, 9})
      for (const std::int64_t valid : {shape[0], shape[0] - 2}) {
        Case test{.name = "add_forward " + shape.to_string() + " with statistics",
                  .maker =
                      [](Backend backend, KernelRequest& request) {
                        return add_forward(backend, {.statistics = true}, request);
                      },
                  .outputs = {f32(shape), f64({2, shape[1]})},
                  .control = all_valid(valid)};
        for (int i = 0; i < count; ++i) test.inputs.push_back(random.uniform(shape));
        Case plain = test;
        plain.maker = [](Backend backend, KernelRequest& request) {
          return add_forward(backend, {}, request);
        };
        plain.outputs.pop_back();
        const auto expect_sums = [&](Backend backend, Layout layout, bool half) {
          const Case sum = half ? in_bf16(plain) : plain, both = half ? in_bf16(test) : test;
          const std::string what = test.name + " on " + name_of(backend);
          const Result result = run(backend, layout, both);
          EXPECT_EQ(result.outputs[0].values, run(backend, layout, sum).outputs[0].values) << what;
          expect_close(result.outputs[1], batch_norm_sums(result.outputs[0], valid), 2e-6, what);
          expect_in_place_equals(backend, layout, both, result);
        };
        expect_sums(Backend::reference, Layout::row_major, false);
        if (!gpu_present()) continue;
        expect_sums(Backend::cuda, Layout::channels_last, false);
        expect_sums(Backend::cuda, Layout::channels_last, true);
      }
}

TEST(Add, StatisticsKeepTheVarianceFarFromZero) {
  Random random(7);
  const Shape shape{20, 24, 28, 28};
  for (const double ratio : kRatios) {
    Case test{
        .name = "add_forward with statistics, ratio " + std::to_string(ratio),
        .maker = [](Backend backend,
                    KernelRequest& request) { return add_forward(backend, {.statistics = true}, request); },
        .inputs = {random.uniform(shape, ratio - 1, ratio + 1), random.uniform(shape)},
        .outputs = {f32(shape), f64({2, shape[1]})},
        .control = all_valid(shape[0] - 1)};
    const auto check = [&](Backend backend, Layout layout, DType type) {
      const Result result = run(backend, layout, type == DType::bf16 ? in_bf16(test) : test);
      expect_variance(result.outputs[1], result.outputs[0], shape[0] - 1, type, test.name);
    };
    check(Backend::reference, Layout::row_major, DType::f32);
    if (!gpu_present()) continue;
    check(Backend::cuda, Layout::channels_last, DType::f32);
    if (ratio < 1000) check(Backend::cuda, Layout::channels_last, DType::bf16);
  }
}

TEST(Add, IsTheSum) {
  const Case test{
      .maker = [](Backend backend, KernelRequest& request) { return add_forward(backend, {}, request); },
      .inputs = {floats({3}, {1, 2, 3}), floats({3}, {10, 20, 30}), floats({3}, {100, 200, 300})},
      .outputs = {f32({3})}};
  EXPECT_EQ(run_reference(test).outputs[0].values, (std::vector<double>{111, 222, 333}));
}

TEST(Add, RefusesOperandsOfDifferentLayouts) {
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    KernelRequest request;
    request.inputs = {f32({1, 16, 2, 2}), f32({1, 16, 2, 2})};
    request.inputs[0].layout = Layout::row_major;
    request.inputs[1].layout = Layout::blocked16;
    request.outputs = {f32({1, 16, 2, 2})};
    EXPECT_THROW(add_forward(backend, {}, request), std::invalid_argument) << name_of(backend);
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
