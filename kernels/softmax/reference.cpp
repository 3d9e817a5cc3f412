// Softmax in plain loops.
#include <algorithm>
#include <cmath>

#include "kernels/device/host_kernel.h"
#include "kernels/softmax/softmax.h"

namespace convoy::kernels::reference {

Kernel softmax_forward(const SoftmaxProblem&, KernelRequest& request) {
  require_counts("softmax_forward", request, 1, 1);
  require_row_major("softmax_forward", request);
  require_shape("softmax_forward", "y", request.outputs[0], request.inputs[0].shape);
  return host_kernel(
      [e = image_extents(request.inputs[0].shape)](const BoundOperands& b) {
        for (std::int64_t row = 0; row < e.n * e.pixels(); ++row) {
          const std::int64_t first = row / e.pixels() * e.c * e.pixels() + row % e.pixels();
          double most = b.in(0)[first], sum = 0;
          for (std::int64_t c = 0; c < e.c; ++c)
            most = std::max<double>(most, b.in(0)[first + c * e.pixels()]);
          for (std::int64_t c = 0; c < e.c; ++c) sum += std::exp(b.in(0)[first + c * e.pixels()] - most);
          for (std::int64_t c = 0; c < e.c; ++c) {
            const std::int64_t at = first + c * e.pixels();
            b.out(0)[at] = static_cast<float>(std::exp(b.in(0)[at] - most) / sum);
          }
        }
      },
      {{0, 0}});
}

Kernel softmax_backward(const SoftmaxProblem&, KernelRequest& request) {
  require_counts("softmax_backward", request, 2, 1);
  require_row_major("softmax_backward", request);
  for (const TensorDesc& input : request.inputs)
    require_shape("softmax_backward", "an input", input, request.outputs[0].shape);
  return host_kernel(
      [e = image_extents(request.inputs[0].shape)](const BoundOperands& b) {
        for (std::int64_t row = 0; row < e.n * e.pixels(); ++row) {
          const std::int64_t first = row / e.pixels() * e.c * e.pixels() + row % e.pixels();
          double sum = 0;
          for (std::int64_t c = 0; c < e.c; ++c) {
            const std::int64_t at = first + c * e.pixels();
            sum += double(b.in(0)[at]) * b.in(1)[at];
          }
          for (std::int64_t c = 0; c < e.c; ++c) {
            const std::int64_t at = first + c * e.pixels();
            b.out(0)[at] = static_cast<float>(b.in(0)[at] * (b.in(1)[at] - sum));
          }
        }
      },
      {{0, 0}, {1, 0}});
}

}  // namespace convoy::kernels::reference
