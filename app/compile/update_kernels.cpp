#include "app/compile/update_kernels.h"

namespace convoy::app {
namespace {

// A segment holds one parameter and starts at a multiple of 128 elements, which are 256 bytes of
// the bf16 copy. TMA requests 256 bytes from the L2 cache at once. Convolutions take up to a third
// longer if a 128-byte row of filters crosses a boundary of such a request.
constexpr std::int64_t kSegmentAlignment = 128;

kernels::TensorDesc vector_of(kernels::DType type, std::int64_t elements) {
  return {type, {elements}, kernels::Layout::row_major, nullptr};
}

}  // namespace

kernels::ParameterSegment segment_of(const GraphParameter& parameter, const kernels::TensorDesc& desc,
                                     std::int64_t offset) {
  const auto count = static_cast<std::int64_t>(desc.bytes() / sizeof(float));
  const ParameterSpec& spec = parameter.spec;
  return {offset, count, spec.decay ? 1 / spec.width_rate : 0, spec.decay, spec.rate * spec.width_rate};
}

FlatLayout::FlatLayout(const CompiledGraph& compiled) : parameter(compiled.graph.parameters_by_gradient()) {
  std::vector<char> early(compiled.descs.size(), 0);
  for (const Node& node : compiled.graph.nodes)
    if (node.is<OptimizerUpdate>()) early[static_cast<std::size_t>(node.inputs[0])] = 1;
  const auto one = [&](int index) -> const GraphParameter& {
    return compiled.graph.parameters[static_cast<std::size_t>(index)];
  };
  const auto is_early = [&](int index) { return early[static_cast<std::size_t>(one(index).tensor)] != 0; };
  const auto is_trained = [&](int index) { return one(index).gradient >= 0; };
  const auto keeps_gradient = [&](int index) { return is_trained(index) && !is_early(index); };
  std::stable_partition(parameter.begin(), parameter.end(), keeps_gradient);
  std::stable_partition(parameter.begin(), parameter.end(), is_trained);
  for (const int index : parameter) {
    segments.push_back(
        segment_of(one(index), compiled.descs[static_cast<std::size_t>(one(index).tensor)], elements));
    elements += (segments.back().count + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
    copied = copied || one(index).copy >= 0;
    if (is_trained(index)) trained = segments.size(), trained_elements = elements;
    if (keeps_gradient(index)) gradients = segments.size(), gradient_elements = elements;
  }
}

kernels::Kernel make_update_kernel(const kernels::OptimizerProblem& problem, kernels::Backend backend,
                                   std::int64_t elements, bool copied) {
  kernels::KernelRequest request;
  request.inputs.resize(static_cast<std::size_t>(kernels::optimizer_inputs(problem)),
                        vector_of(kernels::DType::f32, elements));
  if (copied) request.outputs.push_back(vector_of(kernels::DType::bf16, elements));
  return kernels::optimizer_update(backend, problem, request);
}

UpdateKernels make_update_kernels(const StepOptions& options, const FlatLayout& flat) {
  if (flat.gradients == 0) return {};
  kernels::OptimizerProblem problem = options.optimizer;
  problem.segments = flat.segments;
  problem.segments.resize(flat.gradients);
  kernels::KernelRequest norm{{vector_of(kernels::DType::f32, flat.gradient_elements)},
                              {vector_of(kernels::DType::f64, 1)}};
  kernels::KernelRequest clip{norm.outputs, {vector_of(kernels::DType::f32, 1)}};
  return {make_update_kernel(problem, options.backend, flat.gradient_elements, flat.copied),
          kernels::squared_norm(options.backend, {}, norm), kernels::clip_scale(options.backend, {}, clip)};
}

}  // namespace convoy::app
