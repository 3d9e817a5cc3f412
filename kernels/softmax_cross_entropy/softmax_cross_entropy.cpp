// Checks the requests of the loss (softmax_cross_entropy.h), and chooses the backend.
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernels/device/host_kernel.h"
#include "kernels/device/mix_parameters.h"

namespace convoy::kernels {
namespace {

// Checks a request of forward or backward. `without_mix` is the number of inputs of a request
// without the operand `mix`.
void check(std::string_view operation, std::string_view output, KernelRequest& request,
           std::size_t without_mix, std::size_t outputs) {
  const bool mixes = request.inputs.size() > without_mix;
  require_counts(operation, request, without_mix + (mixes ? 1 : 0), outputs);
  require_row_major(operation, request);
  const Shape& rows = request.inputs[0].shape;
  if (rows.rank() != 2)
    throw std::invalid_argument(
        fmt::format("{}: a first input of extents {}, expected two", operation, rows.to_string()));
  require_shape(operation, "labels", request.inputs[1], {rows[0]});
  require_dtype(operation, "labels", request.inputs[1], DType::i32);
  require_shape(operation, output, request.outputs[0], rows);
  if (!mixes) return;
  require_dtype(operation, "mix", request.inputs[2], DType::i32);
  require_shape(operation, "mix", request.inputs[2], {kMixWords});
}

}  // namespace

Kernel softmax_cross_entropy_forward(Backend backend, const LossProblem& problem, KernelRequest& request) {
  const char* operation = "softmax_cross_entropy_forward";
  check(operation, "probabilities", request, forward_inputs(problem), 2);
  std::vector<TensorDesc*> metrics{&request.outputs[1]};
  if (problem.auxiliary) metrics.push_back(&request.inputs.back());
  for (const TensorDesc* desc : metrics) {
    require_shape(operation, "metrics", *desc, {kLossMetrics});
    require_dtype(operation, "metrics", *desc, DType::f64);
  }
  return select(backend, reference::softmax_cross_entropy_forward, cpu::softmax_cross_entropy_forward,
                cuda::softmax_cross_entropy_forward)(problem, request);
}

Kernel softmax_cross_entropy_backward(Backend backend, const LossProblem& problem, KernelRequest& request) {
  const char* operation = "softmax_cross_entropy_backward";
  check(operation, "dlogits", request, 2, 1);
  return select(backend, reference::softmax_cross_entropy_backward, cpu::softmax_cross_entropy_backward,
                cuda::softmax_cross_entropy_backward)(problem, request);
}

}  // namespace convoy::kernels
