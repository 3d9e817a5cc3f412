// Support for the tests of layers with weights: linear layers and convolutions.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/kernels/harness.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {

// The three operations of one layer. The inputs of forward are x, the weights and, if the layer has
// one, the bias.
struct Layer {
  Case forward, backward_data, backward_weights;
};

// Forward chooses the layout of the weights, which backward must accept.
inline void expect_matches(const Layer& layer, const std::vector<Backend>& under_test) {
  SCOPED_TRACE(layer.forward.name);
  const Result y = run_reference(layer.forward), dx = run_reference(layer.backward_data),
               dw = run_reference(layer.backward_weights);
  for (const Backend backend : under_test)
    for (const Layout layout : layouts_of(backend)) {
      const std::string what = std::string(name_of(backend)) + ", layout " + std::to_string(int(layout));
      const Result forward = run(backend, layout, layer.forward);
      expect_same(layer.forward, forward, y, "forward on " + what);
      Case data = layer.backward_data, weights = layer.backward_weights;
      data.inputs[1].desc = forward.inputs[1].desc;
      expect_same(data, run(backend, layout, data), dx, "backward_data on " + what);
      if (data.outputs[0].shape.rank() == 4) {
        data.outputs[0].layout = layout;
        expect_same(data, run(backend, layout, data), dx, "backward_data in x's layout on " + what);
      }
      weights.outputs[0] = forward.inputs[1].desc;
      weights.outputs[0].dtype = DType::f32;
      const Result gradients = run(backend, layout, weights);
      expect_same(weights, gradients, dw, "backward_weights on " + what);
      EXPECT_EQ(gradients.outputs[0].desc.bytes() / bytes_of(DType::f32),
                forward.inputs[1].desc.bytes() / bytes_of(forward.inputs[1].desc.dtype));
    }
  const bool single = layer.forward.activations == DType::f32;
  if (single && std::find(under_test.begin(), under_test.end(), Backend::cuda) != under_test.end())
    expect_matches({in_bf16(layer.forward), in_bf16(layer.backward_data), in_bf16(layer.backward_weights)},
                   {Backend::cuda});
}

// Compares the gradients with central differences. The layer must have no fused ReLU, because
// backward leaves the derivative of a fused ReLU to its caller.
inline void expect_gradients(const Layer& layer) {
  const std::vector<double>& dy = layer.backward_data.inputs[0].values;
  const Result dx = run_reference(layer.backward_data), dw = run_reference(layer.backward_weights);
  const std::string& name = layer.forward.name;
  expect_gradient(dx.outputs[0].values, central_differences(layer.forward, 0, {dy}), name + " dx");
  expect_gradient(dw.outputs[0].values, central_differences(layer.forward, 1, {dy}), name + " dweights");
  if (layer.forward.inputs.size() > 2)
    expect_gradient(dw.outputs[1].values, central_differences(layer.forward, 2, {dy}), name + " dbias");
}

template <typename Problem>
using Operation = Kernel (*)(Backend, const Problem&, KernelRequest&);

template <typename Problem>
Layer layer_of(const std::string& name, const Problem& problem, Operation<Problem> forward,
               Operation<Problem> data, Operation<Problem> weights, const std::vector<Tensor>& inputs,
               const Tensor& dy) {
  const auto maker = [problem](Operation<Problem> operation) {
    return [=](Backend backend, KernelRequest& request) { return operation(backend, problem, request); };
  };
  Layer layer;
  layer.forward = {.name = name,
                   .maker = maker(forward),
                   .inputs = inputs,
                   .outputs = {dy.desc},
                   .free_layout = {1},
                   .onednn = true};
  layer.backward_data = {.name = name + " backward_data",
                         .maker = maker(data),
                         .inputs = {dy, inputs[1]},
                         .outputs = {inputs[0].desc},
                         .onednn = true};
  layer.backward_weights = {.name = name + " backward_weights",
                            .maker = maker(weights),
                            .inputs = {inputs[0], dy},
                            .outputs = {inputs[1].desc},
                            .single = {0},
                            .onednn = true};
  if (inputs.size() > 2) layer.backward_weights.outputs.push_back(inputs[2].desc);
  return layer;
}

// tf32 drops 13 bits of each operand. That changes a sum of many products by 8e-4 of its value, and
// a sum of few products by more.
inline void expect_matches_in_tf32(Layer layer) {
  for (Case* test : {&layer.forward, &layer.backward_data, &layer.backward_weights}) {
    test->tolerance = 2e-3;
    const Result expected = run_reference(*test);
    expect_same(*test, run(Backend::cuda, Layout::channels_last, *test), expected, test->name + " in tf32");
  }
}

}  // namespace convoy::kernels::testing
