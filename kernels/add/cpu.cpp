// Adds tensors piece by piece. A piece of the result stays in the cache until all inputs are added
// to it.
#include <algorithm>

#include "kernels/add/add.h"
#include "kernels/device/host_kernel.h"
#include "kernels/device/parallel.h"

namespace convoy::kernels::cpu {
namespace {

CONVOY_VECTORISED void add_piece(const float* a, const float* b, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

}  // namespace

Kernel add_forward(const AddProblem&, KernelRequest& request) {
  require_counts("add_forward", request, std::max<std::size_t>(2, request.inputs.size()), 1);
  match_layout("add_forward", request.outputs[0], request.inputs[0]);
  for (TensorDesc& input : request.inputs) {
    match_layout("add_forward", input, request.outputs[0]);
    require_shape("add_forward", "an input", input, request.outputs[0].shape);
  }
  return host_kernel(
      [count = buffer_elements(request.outputs[0])](const BoundOperands& operands) {
        parallel_pieces(count, kPiece, [&](std::int64_t begin, std::int64_t end) {
          float* y = operands.out(0) + begin;
          add_piece(operands.in(0) + begin, operands.in(1) + begin, y, end - begin);
          for (std::size_t k = 2; k < operands.inputs.size(); ++k)
            add_piece(y, operands.in(static_cast<int>(k)) + begin, y, end - begin);
        });
      },
      {{0, 0}});
}

}  // namespace convoy::kernels::cpu
