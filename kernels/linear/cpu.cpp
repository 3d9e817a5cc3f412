// Fully connected layer by oneDNN's inner product, which takes images in any layout and chooses that of the
// weights.
#include "kernels/device/host_kernel.h"
#include "kernels/device/onednn.h"
#include "kernels/linear/linear.h"

namespace convoy::kernels::cpu {
namespace {

using dnnl::memory;
using Forward = dnnl::inner_product_forward;
using BackwardData = dnnl::inner_product_backward_data;
using BackwardWeights = dnnl::inner_product_backward_weights;

// The layer as oneDNN sees it: over images its weights are [O, C, H, W].
struct Layer {
  memory::dims weights_dims;
  memory::desc x, y, bias;  // bias is a zero descriptor where there is none
};

Layer layer_of(const char* operation, const TensorDesc& x, const TensorDesc& weights, TensorDesc& y,
               TensorDesc* bias) {
  settle(operation, y, Layout::row_major);
  require_shape(operation, "y", y, {x.shape[0], y.shape[1]});
  require_shape(operation, "weights", weights, {y.shape[1], x.shape.elements() / x.shape[0]});
  Layer layer{onednn::dims_of(x.shape), onednn::desc_of(x), onednn::desc_of(y), {}};
  layer.weights_dims[0] = y.shape[1];
  if (bias != nullptr) {
    settle(operation, *bias, Layout::row_major);
    require_shape(operation, "bias", *bias, {y.shape[1]});
    layer.bias = onednn::desc_of(*bias);
  }
  return layer;
}

// Also the hint that oneDNN wants for the backward primitives.
Forward::primitive_desc forward_of(const Layer& layer, const memory::desc& weights) {
  const auto training = dnnl::prop_kind::forward_training;
  const Forward::desc description = layer.bias.is_zero()
                                        ? Forward::desc(training, layer.x, weights, layer.y)
                                        : Forward::desc(training, layer.x, weights, layer.bias, layer.y);
  return {description, onednn::user_scratchpad(), onednn::engine()};
}

}  // namespace

Kernel linear_forward(const LinearProblem& problem, KernelRequest& request) {
  require_counts("linear_forward", request, problem.bias ? 3 : 2, 1);
  TensorDesc& weights = request.inputs[1];
  const Layer layer = layer_of("linear_forward", request.inputs[0], weights, request.outputs[0],
                               problem.bias ? &request.inputs[2] : nullptr);
  const auto primitive = forward_of(layer, onednn::any_desc(weights, layer.weights_dims));
  onednn::settle(weights, primitive.weights_desc());
  onednn::Sequence sequence;
  const onednn::Buffer given = onednn::input(1, onednn::desc_of(weights, layer.weights_dims));
  onednn::Sequence::Arguments arguments = {
      {DNNL_ARG_SRC, onednn::input(0, layer.x)},
      {DNNL_ARG_WEIGHTS, sequence.in_layout(given, primitive.weights_desc())},
      {DNNL_ARG_DST, onednn::output(0, layer.y)}};
  if (problem.bias) arguments.emplace_back(DNNL_ARG_BIAS, onednn::input(2, layer.bias));
  sequence.add(primitive, arguments);
  return sequence.kernel();
}

Kernel linear_backward_data(const LinearProblem&, KernelRequest& request) {
  require_counts("linear_backward_data", request, 2, 1);
  TensorDesc &dy = request.inputs[0], &weights = request.inputs[1], &dx = request.outputs[0];
  if (dx.layout == Layout::any)
    dx.layout = dx.shape.rank() == 4 && dx.shape[1] % 16 == 0 ? Layout::blocked16 : Layout::row_major;
  const Layer layer = layer_of("linear_backward_data", dx, weights, dy, nullptr);
  const memory::desc any = onednn::any_desc(weights, layer.weights_dims);
  const BackwardData::primitive_desc primitive({layer.x, any, layer.y}, onednn::user_scratchpad(),
                                               onednn::engine(), forward_of(layer, any));
  onednn::Sequence sequence;
  const onednn::Buffer given = onednn::input(1, onednn::desc_of(weights, layer.weights_dims));
  sequence.add(primitive, {{DNNL_ARG_DIFF_DST, onednn::input(0, layer.y)},
                           {DNNL_ARG_WEIGHTS, sequence.in_layout(given, primitive.weights_desc())},
                           {DNNL_ARG_DIFF_SRC, onednn::output(0, layer.x)}});
  return sequence.kernel();
}

Kernel linear_backward_weights(const LinearProblem& problem, KernelRequest& request) {
  require_counts("linear_backward_weights", request, 2, problem.bias ? 2 : 1);
  TensorDesc& dweights = request.outputs[0];
  const Layer layer = layer_of("linear_backward_weights", request.inputs[0], dweights, request.inputs[1],
                               problem.bias ? &request.outputs[1] : nullptr);
  const memory::desc any = onednn::any_desc(dweights, layer.weights_dims);
  const BackwardWeights::desc description = problem.bias
                                                ? BackwardWeights::desc(layer.x, any, layer.bias, layer.y)
                                                : BackwardWeights::desc(layer.x, any, layer.y);
  const BackwardWeights::primitive_desc primitive(description, onednn::user_scratchpad(), onednn::engine(),
                                                  forward_of(layer, any));
  onednn::settle(dweights, primitive.diff_weights_desc());
  onednn::Sequence sequence;
  onednn::Sequence::Arguments arguments = {{DNNL_ARG_SRC, onednn::input(0, layer.x)},
                                           {DNNL_ARG_DIFF_DST, onednn::input(1, layer.y)}};
  if (problem.bias) arguments.emplace_back(DNNL_ARG_DIFF_BIAS, onednn::output(1, layer.bias));
  sequence.add_writing(primitive, arguments, DNNL_ARG_DIFF_WEIGHTS, primitive.diff_weights_desc(),
                       onednn::output(0, onednn::desc_of(dweights, layer.weights_dims)));
  return sequence.kernel();
}

}  // namespace convoy::kernels::cpu
