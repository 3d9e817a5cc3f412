// Activations in plain loops and double precision.
#include "kernels/activation/reference.h"

#include <cmath>
#include <numbers>

#include "kernels/device/host_kernel.h"

namespace convoy::kernels::reference {
namespace {

using K = ActivationKind;

double clipped(double x, double min, double max) { return x < min ? min : x > max ? max : x; }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double tanh_argument(double x) { return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }

}  // namespace

double activation_value(const ActivationProblem& p, double x) {
  switch (p.kind) {
    case K::clip:
      return clipped(x, p.min, p.max);
    case K::leaky_relu:
      return x > 0 ? x : p.slope * x;
    case K::sigmoid:
      return sigmoid(x);
    case K::hard_sigmoid:
      return clipped(p.slope * x + p.offset, 0, 1);
    case K::hard_swish:
      return x * clipped(x / 6 + 0.5, 0, 1);
    case K::silu:
      return x * sigmoid(x);
    case K::gelu:
      return x * normal_cdf(x);
    case K::gelu_tanh:
      return x * 0.5 * (1 + std::tanh(tanh_argument(x)));
    case K::affine:
      return p.slope * x + p.offset;
  }
  return x;
}

double activation_derivative(const ActivationProblem& p, double x) {
  switch (p.kind) {
    case K::clip:
      return x > p.min && x < p.max ? 1 : 0;
    case K::leaky_relu:
      return x > 0 ? 1 : p.slope;
    case K::sigmoid:
      return sigmoid(x) * (1 - sigmoid(x));
    case K::hard_sigmoid: {
      const double linear = p.slope * x + p.offset;
      return linear > 0 && linear < 1 ? p.slope : 0;
    }
    case K::hard_swish:
      return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
    case K::silu:
      return sigmoid(x) + x * sigmoid(x) * (1 - sigmoid(x));
    case K::gelu:
      return normal_cdf(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    case K::gelu_tanh: {
      const double t = std::tanh(tanh_argument(x));
      const double inner = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
      return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
    }
    case K::affine:
      return p.slope;
  }
  return 1;
}

Kernel activation_forward(const ActivationProblem& problem, KernelRequest& request) {
  require_activation("activation_forward", problem);
  require_counts("activation_forward", request, 1, 1);
  require_row_major("activation_forward", request);
  require_shape("activation_forward", "y", request.outputs[0], request.inputs[0].shape);
  return host_kernel(
      [problem, count = request.inputs[0].shape.elements()](const BoundOperands& operands) {
        for (std::int64_t i = 0; i < count; ++i)
          operands.out(0)[i] = static_cast<float>(activation_value(problem, operands.in(0)[i]));
      },
      {{0, 0}});
}

Kernel activation_backward(const ActivationProblem& problem, KernelRequest& request) {
  require_activation("activation_backward", problem);
  require_counts("activation_backward", request, 2, 1);
  require_row_major("activation_backward", request);
  for (const TensorDesc& input : request.inputs)
    require_shape("activation_backward", "an input", input, request.outputs[0].shape);
  return host_kernel(
      [problem, count = request.inputs[0].shape.elements()](const BoundOperands& operands) {
        for (std::int64_t i = 0; i < count; ++i)
          operands.out(0)[i] =
              static_cast<float>(operands.in(1)[i] * activation_derivative(problem, operands.in(0)[i]));
      },
      {{0, 0}, {1, 0}});
}

}  // namespace convoy::kernels::reference
