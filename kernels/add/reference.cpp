// Adds tensors in plain loops.
#include <algorithm>

#include "kernels/add/add.h"
#include "kernels/device/host_kernel.h"

namespace convoy::kernels::reference {

Kernel add_forward(const AddProblem& problem, KernelRequest& request) {
  require_counts("add_forward", request, std::max<std::size_t>(2, request.inputs.size()),
                 problem.statistics ? 2 : 1);
  require_row_major("add_forward", request);
  for (const TensorDesc& input : request.inputs)
    require_shape("add_forward", "an input", input, request.outputs[0].shape);
  ImageExtents e{};
  if (problem.statistics) {
    e = image_extents(request.outputs[0].shape);
    require_dtype("add_forward", "sums", request.outputs[1], DType::f64);
    require_shape("add_forward", "sums", request.outputs[1], {2, e.c});
  }
  return host_kernel(
      [=, count = request.outputs[0].shape.elements()](const BoundOperands& operands) {
        const int inputs = static_cast<int>(operands.inputs.size());
        for (std::int64_t i = 0; i < count; ++i) {
          double sum = 0;
          for (int k = 0; k < inputs; ++k) sum += operands.in(k)[i];
          operands.out(0)[i] = static_cast<float>(sum);
        }
        if (!problem.statistics) return;
        auto* const sums = operands.out<double>(1);
        std::fill_n(sums, 2 * e.c, 0.0);
        for (std::int64_t i = 0; i < operands.control()->valid * e.c * e.pixels(); ++i) {
          const double value = operands.out(0)[i];  // the stored value, which may be rounded
          sums[i / e.pixels() % e.c] += value;
          sums[e.c + i / e.pixels() % e.c] += value * value;
        }
      },
      {{0, 0}});
}

}  // namespace convoy::kernels::reference
