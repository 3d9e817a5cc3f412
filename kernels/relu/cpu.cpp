// Applies the ReLU to the whole buffer, whatever its layout is. Padding stays zero.
#include "kernels/device/host_kernel.h"
#include "kernels/device/parallel.h"
#include "kernels/relu/relu.h"

namespace convoy::kernels::cpu {
namespace {

CONVOY_VECTORISED void forward_piece(const float* x, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] < 0 ? 0 : x[i];
}

CONVOY_VECTORISED void backward_piece(const float* y, const float* dy, float* dx, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float gradient = dy[i];
    dx[i] = y[i] > 0 ? gradient : 0;
  }
}

}  // namespace

void rectify(float* values, std::int64_t count) {
  parallel_pieces(count, kPiece, [&](std::int64_t begin, std::int64_t end) {
    forward_piece(values + begin, values + begin, end - begin);
  });
}

Kernel relu_forward(const ReluProblem&, KernelRequest& request) {
  require_counts("relu_forward", request, 1, 1);
  match_layout("relu_forward", request.outputs[0], request.inputs[0]);
  require_shape("relu_forward", "y", request.outputs[0], request.inputs[0].shape);
  return host_kernel(
      [count = buffer_elements(request.inputs[0])](const BoundOperands& operands) {
        parallel_pieces(count, kPiece, [&](std::int64_t begin, std::int64_t end) {
          forward_piece(operands.in(0) + begin, operands.out(0) + begin, end - begin);
        });
      },
      {{0, 0}});
}

Kernel relu_backward(const ReluProblem&, KernelRequest& request) {
  require_counts("relu_backward", request, 2, 1);
  match_layout("relu_backward", request.inputs[1], request.inputs[0]);
  match_layout("relu_backward", request.outputs[0], request.inputs[0]);
  require_shape("relu_backward", "dy", request.inputs[1], request.inputs[0].shape);
  require_shape("relu_backward", "dx", request.outputs[0], request.inputs[0].shape);
  return host_kernel(
      [count = buffer_elements(request.inputs[0])](const BoundOperands& operands) {
        parallel_pieces(count, kPiece, [&](std::int64_t begin, std::int64_t end) {
          backward_piece(operands.in(0) + begin, operands.in(1) + begin, operands.out(0) + begin,
                         end - begin);
        });
      },
      {{1, 0}});
}

}  // namespace convoy::kernels::cpu
