// Computes a fully connected layer in plain loops.
#include "kernels/device/host_kernel.h"
#include "kernels/linear/linear.h"

namespace convoy::kernels::reference {
namespace {

struct Extents {
  std::int64_t n, in, out;
};

Extents extents_of(const char* operation, const TensorDesc& x, const TensorDesc& weights,
                   const TensorDesc& y) {
  const Extents e{x.shape[0], x.shape.elements() / x.shape[0], y.shape[1]};
  require_shape(operation, "weights", weights, {e.out, e.in});
  require_shape(operation, "y", y, {e.n, e.out});
  return e;
}

}  // namespace

Kernel linear_forward(const LinearProblem& problem, KernelRequest& request) {
  require_counts("linear_forward", request, problem.bias ? 3 : 2, 1);
  require_row_major("linear_forward", request);
  const Extents e = extents_of("linear_forward", request.inputs[0], request.inputs[1], request.outputs[0]);
  return host_kernel([=](const BoundOperands& operands) {
    const float *x = operands.in(0), *weights = operands.in(1);
    for (std::int64_t n = 0; n < e.n; ++n)
      for (std::int64_t o = 0; o < e.out; ++o) {
        double sum = problem.bias ? operands.in(2)[o] : 0;
        for (std::int64_t i = 0; i < e.in; ++i) sum += double(x[n * e.in + i]) * weights[o * e.in + i];
        operands.out(0)[n * e.out + o] = static_cast<float>(sum);
      }
  });
}

Kernel linear_backward_data(const LinearProblem&, KernelRequest& request) {
  require_counts("linear_backward_data", request, 2, 1);
  require_row_major("linear_backward_data", request);
  const Extents e =
      extents_of("linear_backward_data", request.outputs[0], request.inputs[1], request.inputs[0]);
  return host_kernel([=](const BoundOperands& operands) {
    const float *dy = operands.in(0), *weights = operands.in(1);
    for (std::int64_t n = 0; n < e.n; ++n)
      for (std::int64_t i = 0; i < e.in; ++i) {
        double sum = 0;
        for (std::int64_t o = 0; o < e.out; ++o) sum += double(dy[n * e.out + o]) * weights[o * e.in + i];
        operands.out(0)[n * e.in + i] = static_cast<float>(sum);
      }
  });
}

Kernel linear_backward_weights(const LinearProblem& problem, KernelRequest& request) {
  require_counts("linear_backward_weights", request, 2, problem.bias ? 2 : 1);
  require_row_major("linear_backward_weights", request);
  const Extents e =
      extents_of("linear_backward_weights", request.inputs[0], request.outputs[0], request.inputs[1]);
  return host_kernel([=](const BoundOperands& operands) {
    const float *x = operands.in(0), *dy = operands.in(1);
    for (std::int64_t o = 0; o < e.out; ++o) {
      for (std::int64_t i = 0; i < e.in; ++i) {
        double sum = 0;
        for (std::int64_t n = 0; n < e.n; ++n) sum += double(dy[n * e.out + o]) * x[n * e.in + i];
        operands.out(0)[o * e.in + i] = static_cast<float>(sum);
      }
      if (!problem.bias) continue;
      double sum = 0;
      for (std::int64_t n = 0; n < e.n; ++n) sum += dy[n * e.out + o];
      operands.out(1)[o] = static_cast<float>(sum);
    }
  });
}

}  // namespace convoy::kernels::reference
