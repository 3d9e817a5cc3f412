// Tests convolutions over slices of the batch. Every sample must have the bits that it has in the
// whole batch. A weight gradient that is summed over pieces of the batch must have the same bits if
// it is computed slice by slice.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <stdexcept>

#include "kernels/conv2d/conv2d.h"
#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

struct Layer {
  Shape x, weights;
  Conv2dProblem problem = {};
};

// First layers of networks, layers of 1x1 filters, and layers with a stride, groups, depthwise
// filters, or channels that do not fill a block.
std::vector<Layer> layers() {
  return {{{8, 3, 20, 20}, {64, 3, 3, 3}, {.padding = {1, 1}, .bias = true, .relu = true}},
          {{8, 64, 16, 16}, {64, 64, 3, 3}, {.padding = {1, 1}, .bias = true}},
          {{8, 3, 33, 33}, {64, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}, .bias = true}},
          {{8, 64, 9, 9}, {256, 64, 1, 1}, {.bias = true}},
          {{8, 256, 8, 8}, {64, 256, 1, 1}},
          {{8, 64, 10, 10}, {128, 64, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}},
          {{8, 32, 8, 8}, {64, 8, 3, 3}, {.padding = {1, 1}, .groups = 4}},
          {{8, 32, 12, 12}, {32, 1, 3, 3}, {.padding = {1, 1}, .groups = 32}},
          {{8, 24, 7, 8}, {40, 24, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}}}};
}

Shape with_samples(Shape shape, std::int64_t samples) {
  shape[0] = samples;
  return shape;
}

Tensor slice_of(const Tensor& whole, std::int64_t first, std::int64_t samples) {
  Tensor part = whole;
  const std::int64_t sample = whole.desc.shape.elements() / whole.desc.shape[0];
  part.desc.shape[0] = samples;
  part.values.assign(whole.values.begin() + first * sample,
                     whole.values.begin() + (first + samples) * sample);
  return part;
}

template <typename Operation>
Case case_of(const Layer& layer, Operation operation, std::vector<Tensor> inputs,
             std::vector<TensorDesc> outputs) {
  Case test;
  test.maker = [problem = layer.problem, operation](Backend backend, KernelRequest& request) {
    return operation(backend, problem, request);
  };
  test.control = all_valid(inputs[0].desc.shape[0]);
  test.inputs = std::move(inputs);
  test.outputs = std::move(outputs);
  test.onednn = true;
  return test;
}

// Calls check(run, name) for every layout of every backend, where run(case) computes a case. Skips
// the reference, which computes one sample after the other anyway.
template <typename Check>
void for_each_run(const Check& check) {
  for (const Backend backend : backends())
    for (const Layout layout : layouts_of(backend))
      for (const bool bf16 : {false, true}) {
        if (backend == Backend::reference || (bf16 && backend != Backend::cuda)) continue;
        const auto result = [&](const Case& test) {
          return run(backend, layout, bf16 ? in_bf16(test) : test);
        };
        check(result, std::string(name_of(backend)) + (bf16 ? " bf16" : ""));
      }
}

// Computes `operation` on slices of its first input, and compares with the whole batch.
template <typename Operation>
void expect_samples_keep_their_bits(const Layer& of, Operation operation, const Tensor& divided,
                                    std::vector<Tensor> others, std::vector<int> free_layout, Shape output) {
  const std::int64_t batch = output[0], sample = output.elements() / batch;
  const auto test_of = [&](std::int64_t first, std::int64_t samples) {
    Layer layer = of;
    layer.problem.batch = batch;
    std::vector<Tensor> inputs{slice_of(divided, first, samples)};
    inputs.insert(inputs.end(), others.begin(), others.end());
    Case test = case_of(layer, operation, std::move(inputs), {f32(with_samples(output, samples))});
    test.free_layout = free_layout;
    return test;
  };
  for_each_run([&](const auto& result, const std::string& what) {
    const std::vector<double> whole = result(test_of(0, batch)).outputs[0].values;
    for (const std::int64_t samples : {1, 2, 4})
      for (std::int64_t first = 0; first < batch; first += samples) {
        const std::vector<double> part = result(test_of(first, samples)).outputs[0].values;
        EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first * sample))
            << what << ", " << samples << " samples from " << first;
      }
  });
}

class Conv2dSlices : public ::testing::Test {
 protected:
  Conv2dSlices() { omp_set_num_threads(2); }  // with more threads the CPU backend takes no slices
  ~Conv2dSlices() override { omp_set_num_threads(threads_); }

 private:
  const int threads_ = omp_get_max_threads();
};

TEST_F(Conv2dSlices, ManyThreadsOfACpuAreRefused) {
  omp_set_num_threads(3);
  KernelRequest request{{f32({2, 3, 8, 8}), f32({4, 3, 3, 3})}, {f32({2, 4, 8, 8})}};
  EXPECT_THROW(conv2d_forward(Backend::cpu, {.padding = {1, 1}, .batch = 8}, request), std::invalid_argument);
}

TEST_F(Conv2dSlices, EverySampleOfForwardKeepsItsBits) {
  Random random(3);
  for (const Layer& layer : layers()) {
    std::vector<Tensor> others{random.uniform(layer.weights)};
    if (layer.problem.bias) others.push_back(random.uniform({layer.weights[0]}));
    expect_samples_keep_their_bits(
        layer,
        [](Backend backend, const Conv2dProblem& problem, KernelRequest& request) {
          return conv2d_forward(backend, problem, request);
        },
        random.uniform(layer.x), others, {1}, conv2d_output_shape(layer.problem, layer.x, layer.weights));
  }
}

TEST_F(Conv2dSlices, EverySampleOfBackwardDataKeepsItsBits) {
  Random random(4);
  for (const Layer& layer : layers())
    expect_samples_keep_their_bits(
        layer,
        [](Backend backend, const Conv2dProblem& problem, KernelRequest& request) {
          return conv2d_backward_data(backend, problem, request);
        },
        random.uniform(conv2d_output_shape(layer.problem, layer.x, layer.weights)),
        {random.uniform(layer.weights)}, {1}, layer.x);
}

Case weights_case(const Layer& layer, const std::vector<Tensor>& inputs) {
  std::vector<TensorDesc> outputs{f32(layer.weights)};
  if (layer.problem.bias) outputs.push_back(f32({layer.weights[0]}));
  Case test = case_of(
      layer,
      [](Backend backend, const Conv2dProblem& problem, KernelRequest& request) {
        return conv2d_backward_weights(backend, problem, request);
      },
      inputs, outputs);
  test.single = {0, 1};
  test.free_layout = {2};
  return test;
}

TEST_F(Conv2dSlices, PiecesAddUpToTheGradientOfTheWeights) {
  Random random(5);
  for (Layer layer : layers()) {
    const Tensor x = random.uniform(layer.x),
                 dy = random.uniform(conv2d_output_shape(layer.problem, layer.x, layer.weights));
    for (const std::int64_t piece : {1, 3, 4, 8, 9}) {  // 3 does not divide the batch
      layer.problem.piece = piece;
      Case test = weights_case(layer, {x, dy});
      test.tolerance = 4e-6;
      test.name = "pieces of " + std::to_string(piece);
      expect_matches_reference(test);
    }
  }
}

// Computes a weight gradient slice by slice. Each slice after the first adds to the sum so far.
TEST_F(Conv2dSlices, SlicesHaveTheBitsOfTheWholeGradient) {
  Random random(6);
  for (const Layer& of : layers()) {
    const Tensor x = random.uniform(of.x),
                 dy = random.uniform(conv2d_output_shape(of.problem, of.x, of.weights));
    for_each_run([&](const auto& result, const std::string& what) {
      Layer layer = of;
      layer.problem.piece = 2;
      const Result whole = result(weights_case(layer, {x, dy}));
      for (const std::int64_t samples : {2, 4, 6}) {
        std::vector<Tensor> sums;
        for (std::int64_t first = 0; first < of.x[0]; first += samples) {
          const std::int64_t count = std::min(samples, of.x[0] - first);
          layer.problem.continues = first > 0;
          std::vector<Tensor> inputs{slice_of(x, first, count), slice_of(dy, first, count)};
          inputs.insert(inputs.end(), sums.begin(), sums.end());
          Case test = weights_case(layer, inputs);
          // Input 2, the sum so far, has the layout in which the kernel wrote it.
          test.free_layout = {2};
          sums = result(test).outputs;
        }
        for (std::size_t i = 0; i < sums.size(); ++i)
          EXPECT_EQ(sums[i].values, whole.outputs[i].values) << what << ", slices of " << samples;
      }
    });
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
