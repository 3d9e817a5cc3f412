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

FlatLayout::FlatLayout(const CompiledGraph& compiled) : parameter(compiled.graph.parameters_by_gradient()) {
  for (const int index : parameter) {
    const TrainableParameter& one = compiled.graph.parameters[static_cast<std::size_t>(index)];
    const auto bytes =
        static_cast<std::int64_t>(compiled.descs[static_cast<std::size_t>(one.tensor)].bytes());
    const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float));
    const ParameterSpec& spec = one.spec;
    segments.push_back(
        {elements, count, spec.decay ? 1 / spec.width_rate : 0, spec.decay, spec.rate * spec.width_rate});
    elements += (count + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
    copied = copied || one.copy >= 0;
    if (one.gradient < 0) continue;
    trained = segments.size();
    trained_elements = elements;
  }
}

UpdateKernels make_update_kernels(const StepOptions& options, const FlatLayout& flat) {
  if (flat.trained == 0) return {};
  const kernels::TensorDesc buffer = vector_of(kernels::DType::f32, flat.trained_elements);
  kernels::OptimizerProblem problem = options.optimizer;
  problem.segments = flat.segments;
  problem.segments.resize(flat.trained);
  kernels::KernelRequest request{{buffer, buffer}, {}};
  request.inputs.resize(static_cast<std::size_t>(kernels::optimizer_inputs(problem)), buffer);
  if (flat.copied) request.outputs.push_back(vector_of(kernels::DType::bf16, flat.trained_elements));
  kernels::KernelRequest norm{{buffer}, {vector_of(kernels::DType::f64, 1)}};
  kernels::KernelRequest clip{norm.outputs, {vector_of(kernels::DType::f32, 1)}};
  return {kernels::optimizer_update(options.backend, problem, request),
          kernels::squared_norm(options.backend, {}, norm), kernels::clip_scale(options.backend, {}, clip)};
}

}  // namespace convoy::app
