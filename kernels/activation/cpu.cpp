// Applies activations on the host, to whole buffers, so that any layout works. oneDNN is not used,
// because its activations turn NaN into numbers, which would hide that a run diverges.
#include "kernels/activation/cpu.h"

#include "kernels/activation/formulas.h"
#include "kernels/device/host_kernel.h"
#include "kernels/device/parallel.h"

namespace convoy::kernels::cpu {
namespace {

template <ActivationKind kind>
CONVOY_VECTORISED void forward_piece(const ActivationProblem& problem, const float* x, float* y,
                                     std::int64_t count) {
  const ActivationProblem p = problem;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = activation::value_of<kind>(p, x[i]);
}

template <ActivationKind kind>
CONVOY_VECTORISED void backward_piece(const ActivationProblem& problem, const float* from, const float* dy,
                                      float* dx, std::int64_t count) {
  const ActivationProblem p = problem;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * activation::derivative_of<kind>(p, from[i]);
}

template <ActivationKind kind>
CONVOY_VECTORISED void derivative_piece(const ActivationProblem& problem, const float* from, float* to,
                                        std::int64_t count) {
  const ActivationProblem p = problem;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = activation::derivative_of<kind>(p, from[i]);
}

}  // namespace

void activate(const ActivationProblem& problem, float* values, std::int64_t count) {
  activation::with_kind(problem.kind,
                        [&](auto kind) { forward_piece<kind()>(problem, values, values, count); });
}
void differentiate(const ActivationProblem& problem, float* values, std::int64_t count) {
  activation::with_kind(problem.kind,
                        [&](auto kind) { derivative_piece<kind()>(problem, values, values, count); });
}
bool moves_zero(const ActivationProblem& problem) {
  return activation::with_kind(problem.kind,
                               [&](auto kind) { return activation::value_of<kind()>(problem, 0.0f) != 0; });
}

Kernel activation_forward(const ActivationProblem& problem, KernelRequest& request) {
  require_activation("activation_forward", problem);
  require_counts("activation_forward", request, 1, 1);
  match_layout("activation_forward", request.outputs[0], request.inputs[0]);
  require_shape("activation_forward", "y", request.outputs[0], request.inputs[0].shape);
  return activation::with_kind(problem.kind, [&](auto kind) {
    return host_kernel(
        [problem, y = request.outputs[0],
         count = buffer_elements(request.inputs[0])](const BoundOperands& operands) {
          parallel_pieces(count, kPiece, [&](std::int64_t begin, std::int64_t end) {
            forward_piece<decltype(kind)::value>(problem, operands.in(0) + begin, operands.out(0) + begin,
                                                 end - begin);
          });
          if (moves_zero(problem)) clear_channel_padding(y, operands.out(0));
        },
        {{0, 0}});
  });
}

Kernel activation_backward(const ActivationProblem& problem, KernelRequest& request) {
  require_activation("activation_backward", problem);
  require_counts("activation_backward", request, 2, 1);
  match_layout("activation_backward", request.inputs[1], request.inputs[0]);
  match_layout("activation_backward", request.outputs[0], request.inputs[0]);
  for (const TensorDesc& input : request.inputs)
    require_shape("activation_backward", "an input", input, request.outputs[0].shape);
  return activation::with_kind(problem.kind, [&](auto kind) {
    return host_kernel(
        [problem, dx = request.outputs[0],
         count = buffer_elements(request.inputs[0])](const BoundOperands& operands) {
          parallel_pieces(count, kPiece, [&](std::int64_t begin, std::int64_t end) {
            backward_piece<decltype(kind)::value>(problem, operands.in(0) + begin, operands.in(1) + begin,
                                                  operands.out(0) + begin, end - begin);
          });
          // A negative derivative at 0 turns the zeros of the padding into -0.
          if (activation::derivative_of<decltype(kind)::value>(problem, 0.0f) < 0)
            clear_channel_padding(dx, operands.out(0));
        },
        {{0, 0}, {1, 0}});
  });
}

}  // namespace convoy::kernels::cpu
