// Tests depthwise convolutions, which have as many groups as channels.
#include <gtest/gtest.h>

#include "kernels/conv2d/conv2d.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

struct Layer {
  Shape x;
  int filter, stride = 1, padding = -1;  // padding: -1 for half the filter

  Conv2dProblem problem() const {
    const int pad = padding < 0 ? filter / 2 : padding;
    return {.stride = {stride, stride}, .padding = {pad, pad}, .groups = static_cast<int>(x[1])};
  }
  Shape weights() const { return {x[1], 1, filter, filter}; }
  Shape y() const { return conv2d_output_shape(problem(), x, weights()); }
};

// The layers differ in the filter, the stride, the padding and the number of tiles. Some fill tiles
// only in part. Some have channels that do not fill a block, or an access of 16 or 8 bytes.
const std::vector<Layer> kLayers = {
    {{2, 32, 7, 7}, 3},       {{3, 40, 14, 14}, 3},     {{2, 32, 30, 31}, 3},    {{1, 8, 9, 60}, 3},
    {{2, 58, 5, 6}, 3},       {{1, 36, 8, 8}, 3},       {{9, 16, 4, 4}, 3},      {{2, 34, 6, 9}, 3, 1, 0},
    {{1, 16, 6, 6}, 3, 1, 2}, {{2, 32, 14, 14}, 3, 2},  {{2, 24, 15, 13}, 3, 2}, {{3, 64, 7, 7}, 3, 2},
    {{1, 16, 33, 18}, 3, 2},  {{2, 10, 8, 9}, 3, 2, 0}, {{2, 32, 14, 14}, 5},    {{1, 12, 29, 17}, 5},
    {{5, 48, 7, 7}, 5},       {{2, 32, 14, 14}, 5, 2},  {{1, 24, 13, 30}, 5, 2}, {{2, 8, 9, 8}, 5, 2, 1},
    {{2, 32, 14, 14}, 7},     {{1, 96, 11, 30}, 7},     {{3, 16, 7, 7}, 7},      {{2, 16, 12, 15}, 7, 2},
    {{1, 10, 9, 9}, 7, 1, 1}, {{1, 3, 9, 9}, 3},        {{1, 8, 9, 9}, 3, 3},
};

std::string name_of(const char* operation, const Layer& layer) {
  return std::string(operation) + " " + layer.x.to_string() + " by " + layer.weights().to_string() +
         " stride " + std::to_string(layer.stride) + " padding " + std::to_string(layer.problem().padding[0]);
}

Case forward(Random& random, const Layer& layer, Conv2dProblem problem) {
  Case test{.name = name_of("depthwise forward", layer),
            .maker = [=](Backend backend,
                         KernelRequest& request) { return conv2d_forward(backend, problem, request); },
            .inputs = {random.uniform(layer.x), random.uniform(layer.weights())},
            .outputs = {f32(layer.y())},
            .control = all_valid(layer.x[0]),
            .free_layout = {1},
            .tolerance = 1e-6,
            .onednn = true};
  if (problem.bias) test.inputs.push_back(random.uniform({layer.x[1]}));
  return test;
}

Case backward_data(Random& random, const Layer& layer, Conv2dProblem problem) {
  Case test{.name = name_of("depthwise backward_data", layer),
            .maker = [=](Backend backend,
                         KernelRequest& request) { return conv2d_backward_data(backend, problem, request); },
            .inputs = {random.uniform(layer.y()), random.uniform(layer.weights())},
            .outputs = {f32(layer.x)},
            .control = all_valid(layer.x[0]),
            .free_layout = {1},
            .tolerance = 1e-6,
            .onednn = true};
  if (problem.input_relu) test.inputs.push_back(random.uniform(layer.x));
  return test;
}

Case backward_weights(Random& random, const Layer& layer, Conv2dProblem problem) {
  Case test{
      .name = name_of("depthwise backward_weights", layer),
      .maker = [=](Backend backend,
                   KernelRequest& request) { return conv2d_backward_weights(backend, problem, request); },
      .inputs = {random.uniform(layer.x), random.uniform(layer.y())},
      .outputs = {f32(layer.weights())},
      .control = all_valid(layer.x[0]),
      .single = {0},
      .tolerance = 2e-6,
      .onednn = true};
  if (problem.bias) test.outputs.push_back(f32({layer.x[1]})), test.single.push_back(1);
  return test;
}

TEST(Depthwise, MatchesTheReference) {
  Random random(1);
  for (const Layer& layer : kLayers) {
    expect_matches_reference(forward(random, layer, layer.problem()));
    expect_matches_reference(backward_data(random, layer, layer.problem()));
    expect_matches_reference(backward_weights(random, layer, layer.problem()));
  }
}

TEST(Depthwise, AddsBiasesAndRectifies) {
  Random random(2);
  for (const Layer& layer : {Layer{{2, 34, 9, 9}, 3}, Layer{{2, 32, 8, 8}, 5, 2}}) {
    Conv2dProblem problem = layer.problem();
    problem.bias = true;
    expect_matches_reference(backward_weights(random, layer, problem));
    problem.relu = true;
    expect_matches_reference(forward(random, layer, problem));
  }
}

TEST(Depthwise, GivesTheGradientBeforeItsInputsRelu) {
  if (!gpu_present()) GTEST_SKIP() << "no GPU, and the cpu backend does not fuse it";
  Random random(3);
  for (const Layer& layer : {Layer{{2, 34, 9, 9}, 3}, Layer{{2, 32, 13, 8}, 5, 2}}) {
    Conv2dProblem problem = layer.problem();
    problem.input_relu = true;
    expect_matches_reference(backward_data(random, layer, problem), {Backend::cuda});
  }
}

// The sums for a batch norm must be those of y as it is stored (rounded), without the padding
// samples at the end of the batch. y itself must have all samples.
TEST(Depthwise, StatisticsAreThoseOfWhatWasWritten) {
  if (!gpu_present()) GTEST_SKIP() << "no GPU, and the cpu backend does not fuse it";
  Random random(4);
  for (const Layer& layer :
       {Layer{{5, 34, 9, 9}, 3}, Layer{{6, 32, 28, 28}, 3, 2}, Layer{{3, 96, 14, 14}, 7}})
    for (const std::int64_t valid : {layer.x[0], layer.x[0] - 2})
      for (const bool half : {false, true}) {
        Conv2dProblem problem = layer.problem();
        problem.statistics = true;
        Case test = forward(random, layer, problem);
        test.outputs.push_back(f64({2, layer.x[1]}));
        test.control = all_valid(valid);
        const Result result = run(Backend::cuda, Layout::channels_last, half ? in_bf16(test) : test);
        expect_close(result.outputs[1], batch_norm_sums(result.outputs[0], valid), 2e-6, test.name);
      }
}

TEST(Depthwise, StatisticsKeepTheVarianceFarFromZero) {
  if (!gpu_present()) GTEST_SKIP() << "no GPU, and the cpu backend does not fuse it";
  Random random(6);
  for (const Layer& layer :
       {Layer{{5, 34, 9, 9}, 3}, Layer{{6, 32, 28, 28}, 3, 2}, Layer{{40, 32, 28, 28}, 5},
        Layer{{9, 32, 28, 28}, 5, 2}, Layer{{9, 96, 14, 14}, 7}, Layer{{9, 34, 30, 30}, 7}})
    for (const double ratio : kRatios)
      for (const bool half : {false, true}) {
        if (half && ratio == 1000) continue;
        Conv2dProblem problem = layer.problem();
        problem.statistics = true;
        Case test = forward(random, layer, problem);
        test.inputs[0] = random.uniform(layer.x, ratio - 1, ratio + 1);
        // The filter picks the pixel in its middle, so that zeros around the image do not count.
        const std::int64_t taps = layer.weights().elements() / layer.x[1];
        for (std::size_t i = 0; i < test.inputs[1].values.size(); ++i)
          test.inputs[1].values[i] = static_cast<std::int64_t>(i) % taps == taps / 2;
        test.outputs.push_back(f64({2, layer.x[1]}));
        test.control = all_valid(layer.x[0] - 1);
        const Result result = run(Backend::cuda, Layout::channels_last, half ? in_bf16(test) : test);
        expect_variance(result.outputs[1], result.outputs[0], layer.x[0] - 1, half ? DType::bf16 : DType::f32,
                        test.name + ", ratio " + std::to_string(ratio));
      }
}

// The gradient of the filters must be written in the layout in which forward reads the filters.
TEST(Depthwise, WritesTheGradientInTheLayoutOfTheFilters) {
  Random random(5);
  for (const Layer& layer : {Layer{{2, 40, 9, 9}, 3}, Layer{{2, 40, 9, 9}, 5}, Layer{{2, 32, 9, 9}, 7, 2}})
    for (const Layout images : {Layout::blocked16, Layout::blocked8}) {
      KernelRequest forward{{f32(layer.x), f32(layer.weights())}, {f32(layer.y())}};
      forward.inputs[0].layout = images;
      conv2d_forward(Backend::cpu, layer.problem(), forward);
      Case test = backward_weights(random, layer, layer.problem());
      const Result expected = run_reference(test);
      test.outputs[0] = forward.inputs[1];
      expect_same(test, run(Backend::cpu, images, test), expected, test.name);
    }
}

}  // namespace
}  // namespace convoy::kernels::testing
