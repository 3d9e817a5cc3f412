// Convolves with oneDNN's direct algorithms, in the layouts that oneDNN prefers on this processor.
#include <omp.h>

#include <stdexcept>

#include "kernels/conv2d/conv2d.h"
#include "kernels/conv2d/cpu_depthwise.h"
#include "kernels/conv2d/pieces.h"
#include "kernels/device/host_kernel.h"
#include "kernels/device/onednn.h"
#include "kernels/relu/relu.h"

namespace convoy::kernels::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using onednn::Buffer;

// A problem in oneDNN's terms. oneDNN counts dilation from 0, and takes the number of groups as an
// additional outermost extent of the weights.
struct Geometry {
  memory::dims strides, dilations, padding, weights;

  Geometry(const Conv2dProblem& problem, const Shape& w)
      : strides{problem.stride[0], problem.stride[1]},
        dilations{problem.dilation[0] - 1, problem.dilation[1] - 1},
        padding{problem.padding[0], problem.padding[1]},
        weights{w[0], w[1], w[2], w[3]} {
    if (problem.groups > 1) weights = {problem.groups, w[0] / problem.groups, w[1], w[2], w[3]};
  }
};

dnnl::convolution_forward::primitive_desc forward_descriptor(const Geometry& at, const memory::desc& x,
                                                             const memory::desc& weights,
                                                             const memory::desc& bias,
                                                             const memory::desc& y) {
  return onednn::forward_primitive<dnnl::convolution_forward>(
      dnnl::prop_kind::forward_training, algorithm::convolution_direct, x, weights, bias, y, at.strides,
      at.dilations, at.padding, at.padding);
}

// Returns the forward descriptor that oneDNN requires as a hint for backward's descriptors. It
// fixes no layouts, because backward chooses its own.
dnnl::convolution_forward::primitive_desc hint(const Geometry& at, const TensorDesc& x,
                                               const TensorDesc& weights, const TensorDesc& y) {
  return forward_descriptor(at, onednn::any_desc(x), onednn::any_desc(weights, at.weights), {},
                            onednn::any_desc(y));
}

// Applies our own ReLU after the kernel. oneDNN's ReLU turns NaN into 0, which would hide that a
// training diverges.
Kernel rectified(Kernel kernel, std::int64_t count) {
  kernel.bind = [bind = std::move(kernel.bind), count](const Operands& operands) -> Launch {
    return [launch = bind(operands), y = static_cast<float*>(operands.outputs[0]), count](Stream stream) {
      launch(stream);
      rectify(y, count);
    };
  };
  return kernel;
}

// Throws std::invalid_argument for a slice of the batch if many threads share the work. oneDNN then
// divides it by other rules than for the whole batch, and may add in another order: with 16
// threads, some samples got other bits. With one or two threads none did.
void require_bits_of_whole_batch(const Conv2dProblem& problem, std::int64_t samples) {
  constexpr int kMostThreads = 2;
  if (problem.batch > samples && omp_get_max_threads() > kMostThreads)
    throw std::invalid_argument("conv2d: a slice of the batch on more than two threads");
}

}  // namespace

Kernel conv2d_forward(const Conv2dProblem& problem, KernelRequest& request) {
  require_counts("conv2d_forward", request, problem.bias ? 3 : 2, 1);
  TensorDesc &x = request.inputs[0], &weights = request.inputs[1], &y = request.outputs[0];
  require_shape("conv2d_forward", "y", y, conv2d_output_shape(problem, x.shape, weights.shape));
  require_bits_of_whole_batch(problem, x.shape[0]);
  const Geometry at(problem, weights.shape);
  if (problem.bias) require_layout("conv2d_forward", request.inputs[2], Layout::row_major);
  const memory::desc bias = problem.bias ? onednn::desc_of(request.inputs[2]) : memory::desc{};
  // Unless x is row_major, let oneDNN choose the layout of x, too, because copying x is cheaper
  // than a convolution in a layout that oneDNN dislikes.
  const auto wanted =
      forward_descriptor(at, x.layout == Layout::row_major ? onednn::desc_of(x) : onednn::any_desc(x),
                         onednn::open_desc_of(weights, at.weights), bias, onednn::open_desc_of(y));
  onednn::require_layout(weights, wanted.weights_desc());
  onednn::choose_image_layout(y, wanted.dst_desc(), x);
  onednn::Sequence sequence;
  const Buffer source = sequence.in_layout(onednn::input(0, onednn::desc_of(x)), wanted.src_desc());
  const Buffer filters =
      sequence.in_layout(onednn::input(1, onednn::desc_of(weights, at.weights)), wanted.weights_desc());
  onednn::Sequence::Arguments arguments{{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, filters}};
  if (problem.bias) arguments.emplace_back(DNNL_ARG_BIAS, onednn::input(2, bias));
  sequence.add_writing(wanted, std::move(arguments), DNNL_ARG_DST, wanted.dst_desc(),
                       onednn::output(0, onednn::desc_of(y)));
  return problem.relu ? rectified(sequence.kernel(), buffer_elements(y)) : sequence.kernel();
}

Kernel conv2d_backward_data(const Conv2dProblem& problem, KernelRequest& request) {
  require_counts("conv2d_backward_data", request, 2, 1);
  TensorDesc &dy = request.inputs[0], &weights = request.inputs[1], &dx = request.outputs[0];
  require_shape("conv2d_backward_data", "dy", dy, conv2d_output_shape(problem, dx.shape, weights.shape));
  require_bits_of_whole_batch(problem, dx.shape[0]);
  const Geometry at(problem, weights.shape);
  const auto wanted = onednn::backward_primitive<dnnl::convolution_backward_data>(
      hint(at, dx, weights, dy), algorithm::convolution_direct, onednn::open_desc_of(dx),
      onednn::any_desc(weights, at.weights), onednn::any_desc(dy), at.strides, at.dilations, at.padding,
      at.padding);
  onednn::choose_image_layout(dx, wanted.diff_src_desc(), dy);
  onednn::require_layout(weights, wanted.weights_desc());
  onednn::Sequence sequence;
  const Buffer gradient = sequence.in_layout(onednn::input(0, onednn::desc_of(dy)), wanted.diff_dst_desc());
  const Buffer filters =
      sequence.in_layout(onednn::input(1, onednn::desc_of(weights, at.weights)), wanted.weights_desc());
  sequence.add_writing(wanted, {{DNNL_ARG_DIFF_DST, gradient}, {DNNL_ARG_WEIGHTS, filters}},
                       DNNL_ARG_DIFF_SRC, wanted.diff_src_desc(), onednn::output(0, onednn::desc_of(dx)));
  return sequence.kernel();
}

Kernel conv2d_backward_weights(const Conv2dProblem& problem, KernelRequest& request) {
  if (problem.piece > 0)
    return backward_weights_in_pieces(Backend::cpu, conv2d_backward_weights, problem, request);
  require_counts("conv2d_backward_weights", request, 2, problem.bias ? 2 : 1);
  TensorDesc &x = request.inputs[0], &dy = request.inputs[1], &dweights = request.outputs[0];
  require_shape("conv2d_backward_weights", "dy", dy, conv2d_output_shape(problem, x.shape, dweights.shape));
  const Geometry at(problem, dweights.shape);
  if (problem.bias) require_layout("conv2d_backward_weights", request.outputs[1], Layout::row_major);
  if (auto depthwise = depthwise_backward_weights(problem, request)) return *std::move(depthwise);
  const memory::desc bias = problem.bias ? onednn::desc_of(request.outputs[1]) : memory::desc{};
  const auto wanted = onednn::backward_primitive<dnnl::convolution_backward_weights>(
      hint(at, x, dweights, dy), algorithm::convolution_direct,
      x.layout == Layout::row_major ? onednn::desc_of(x) : onednn::any_desc(x),
      onednn::any_desc(dweights, at.weights), bias, onednn::any_desc(dy), at.strides, at.dilations,
      at.padding, at.padding);
  onednn::require_layout(dweights, wanted.diff_weights_desc());
  onednn::Sequence sequence;
  const Buffer source = sequence.in_layout(onednn::input(0, onednn::desc_of(x)), wanted.src_desc());
  const Buffer gradient = sequence.in_layout(onednn::input(1, onednn::desc_of(dy)), wanted.diff_dst_desc());
  onednn::Sequence::Arguments arguments{{DNNL_ARG_SRC, source}, {DNNL_ARG_DIFF_DST, gradient}};
  if (problem.bias) arguments.emplace_back(DNNL_ARG_DIFF_BIAS, onednn::output(1, bias));
  sequence.add_writing(wanted, std::move(arguments), DNNL_ARG_DIFF_WEIGHTS, wanted.diff_weights_desc(),
                       onednn::output(0, onednn::desc_of(dweights, at.weights)));
  return sequence.kernel();
}

}  // namespace convoy::kernels::cpu
