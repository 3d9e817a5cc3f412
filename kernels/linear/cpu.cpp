// Computes a fully connected layer by oneDNN's inner product. Images that are not row_major are
// first flattened to rows. With other images, oneDNN would choose different layouts of the weights
// in forward and backward, and copying weights costs more than flattening.
#include "kernels/device/host_kernel.h"
#include "kernels/device/onednn.h"
#include "kernels/linear/linear.h"

namespace convoy::kernels::cpu {
namespace {

using dnnl::memory;
using Forward = dnnl::inner_product_forward;
using BackwardData = dnnl::inner_product_backward_data;
using BackwardWeights = dnnl::inner_product_backward_weights;

// oneDNN's descriptors of the layer's operands. Without a bias, `bias` is a zero descriptor.
struct Layer {
  memory::desc x, weights, y, bias;
};

// Returns the shape [N, C * H * W].
Shape flat(const Shape& x) { return {x[0], x.elements() / x[0]}; }

Layer layer_of(const char* operation, const TensorDesc& x, const TensorDesc& weights, TensorDesc& y,
               TensorDesc* bias) {
  const Shape flat_x = flat(x.shape);
  require_layout(operation, y, Layout::row_major);
  require_shape(operation, "y", y, {flat_x[0], y.shape[1]});
  require_shape(operation, "weights", weights, {y.shape[1], flat_x[1]});
  const TensorDesc matrix{x.dtype, flat_x, Layout::row_major, nullptr};
  // If the weights are row_major, all passes read them as they are. Otherwise oneDNN chooses the
  // layout of the weights in each pass.
  Layer layer{onednn::desc_of(matrix),
              weights.layout == Layout::row_major ? onednn::desc_of(weights) : onednn::any_desc(weights),
              onednn::desc_of(y),
              {}};
  if (bias != nullptr) {
    require_layout(operation, *bias, Layout::row_major);
    require_shape(operation, "bias", *bias, {y.shape[1]});
    layer.bias = onednn::desc_of(*bias);
  }
  return layer;
}

// Returns the descriptor of forward, which oneDNN's backward primitives need as a hint.
Forward::primitive_desc forward_of(const Layer& layer) {
  return onednn::forward_primitive<Forward>(dnnl::prop_kind::forward_training, layer.x, layer.weights,
                                            layer.bias, layer.y);
}

// Returns the descriptor of x as a row_major tensor.
memory::desc plain_desc(const TensorDesc& x) {
  return onednn::desc_of({x.dtype, x.shape, Layout::row_major, nullptr});
}

// Returns x as a matrix [N, C * H * W], after a copy if x is not row_major.
onednn::Buffer flat_input(onednn::Sequence& sequence, const TensorDesc& x, const Layer& layer) {
  onednn::Buffer buffer = sequence.in_layout(onednn::input(0, onednn::desc_of(x)), plain_desc(x));
  buffer.desc = layer.x;
  return buffer;
}

}  // namespace

Kernel linear_forward(const LinearProblem& problem, KernelRequest& request) {
  require_counts("linear_forward", request, problem.bias ? 3 : 2, 1);
  TensorDesc &x = request.inputs[0], &weights = request.inputs[1];
  const Layer layer =
      layer_of("linear_forward", x, weights, request.outputs[0], problem.bias ? &request.inputs[2] : nullptr);
  const Forward::primitive_desc primitive = forward_of(layer);
  onednn::require_layout(weights, primitive.weights_desc());
  onednn::Sequence sequence;
  onednn::Sequence::Arguments arguments = {
      {DNNL_ARG_SRC, flat_input(sequence, x, layer)},
      {DNNL_ARG_WEIGHTS,
       sequence.in_layout(onednn::input(1, onednn::desc_of(weights)), primitive.weights_desc())},
      {DNNL_ARG_DST, onednn::output(0, layer.y)}};
  if (problem.bias) arguments.emplace_back(DNNL_ARG_BIAS, onednn::input(2, layer.bias));
  sequence.add(primitive, arguments);
  return sequence.kernel();
}

Kernel linear_backward_data(const LinearProblem&, KernelRequest& request) {
  require_counts("linear_backward_data", request, 2, 1);
  TensorDesc &dy = request.inputs[0], &weights = request.inputs[1], &dx = request.outputs[0];
  if (dx.layout == Layout::any) dx.layout = Layout::row_major;
  const Layer layer = layer_of("linear_backward_data", dx, weights, dy, nullptr);
  const auto primitive =
      onednn::backward_primitive<BackwardData>(forward_of(layer), layer.x, layer.weights, layer.y);
  onednn::require_layout(weights, primitive.weights_desc());
  onednn::Sequence sequence;
  const onednn::Buffer target = onednn::output(0, onednn::desc_of(dx));
  onednn::Buffer result = sequence.same_or_temporary(target, plain_desc(dx));
  const onednn::Buffer plain = result;
  result.desc = layer.x;
  const onednn::Buffer given = onednn::input(1, onednn::desc_of(weights));
  sequence.add(primitive, {{DNNL_ARG_DIFF_DST, onednn::input(0, layer.y)},
                           {DNNL_ARG_WEIGHTS, sequence.in_layout(given, primitive.weights_desc())},
                           {DNNL_ARG_DIFF_SRC, result}});
  if (plain.desc != target.desc) sequence.reorder(plain, target);
  return sequence.kernel();
}

Kernel linear_backward_weights(const LinearProblem& problem, KernelRequest& request) {
  require_counts("linear_backward_weights", request, 2, problem.bias ? 2 : 1);
  TensorDesc &x = request.inputs[0], &dweights = request.outputs[0];
  const Layer layer = layer_of("linear_backward_weights", x, dweights, request.inputs[1],
                               problem.bias ? &request.outputs[1] : nullptr);
  const auto primitive = onednn::backward_primitive<BackwardWeights>(forward_of(layer), layer.x,
                                                                     layer.weights, layer.bias, layer.y);
  onednn::require_layout(dweights, primitive.diff_weights_desc());
  onednn::Sequence sequence;
  onednn::Sequence::Arguments arguments = {{DNNL_ARG_SRC, flat_input(sequence, x, layer)},
                                           {DNNL_ARG_DIFF_DST, onednn::input(1, layer.y)}};
  if (problem.bias) arguments.emplace_back(DNNL_ARG_DIFF_BIAS, onednn::output(1, layer.bias));
  sequence.add_writing(primitive, arguments, DNNL_ARG_DIFF_WEIGHTS, primitive.diff_weights_desc(),
                       onednn::output(0, onednn::desc_of(dweights)));
  return sequence.kernel();
}

}  // namespace convoy::kernels::cpu
