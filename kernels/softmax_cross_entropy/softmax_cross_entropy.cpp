// Checks requests, and chooses the backend.
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernels/device/host_kernel.h"
#include "kernels/device/mix_parameters.h"

namespace convoy::kernels {
namespace {

bool mixes(const KernelRequest& request) { return request.inputs.size() > 2; }

void check(std::string_view operation, std::string_view output, KernelRequest& request) {
  require_row_major(operation, request);
  const Shape& rows = request.inputs[0].shape;
  if (rows.rank() != 2)
    throw std::invalid_argument(
        fmt::format("{}: a first input of extents {}, expected two", operation, rows.to_string()));
  require_shape(operation, "labels", request.inputs[1], {rows[0]});
  require_dtype(operation, "labels", request.inputs[1], DType::i32);
  require_shape(operation, output, request.outputs[0], rows);
  if (!mixes(request)) return;
  require_dtype(operation, "mix", request.inputs[2], DType::i32);
  require_shape(operation, "mix", request.inputs[2], {kMixWords});
}

}  // namespace

Kernel softmax_cross_entropy_forward(Backend backend, const LossProblem& problem, KernelRequest& request) {
  const char* operation = "softmax_cross_entropy_forward";
  require_counts(operation, request, mixes(request) ? 3 : 2, 2);
  check(operation, "probabilities", request);
  require_shape(operation, "metrics", request.outputs[1], {kLossMetrics});
  require_dtype(operation, "metrics", request.outputs[1], DType::f64);
  return select(backend, reference::softmax_cross_entropy_forward, cpu::softmax_cross_entropy_forward,
                CONVOY_CUDA_MAKER(softmax_cross_entropy_forward))(problem, request);
}

Kernel softmax_cross_entropy_backward(Backend backend, const LossProblem& problem, KernelRequest& request) {
  const char* operation = "softmax_cross_entropy_backward";
  require_counts(operation, request, mixes(request) ? 3 : 2, 1);
  check(operation, "dlogits", request);
  return select(backend, reference::softmax_cross_entropy_backward, cpu::softmax_cross_entropy_backward,
                CONVOY_CUDA_MAKER(softmax_cross_entropy_backward))(problem, request);
}

}  // namespace convoy::kernels
