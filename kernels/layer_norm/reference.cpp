// Layer normalisation in plain loops.
#include <cmath>
#include <vector>

#include "kernels/device/host_kernel.h"
#include "kernels/layer_norm/layer_norm.h"

namespace convoy::kernels::reference {
namespace {

// Calls visit(row, first) for every pixel. `row` is the number of the pixel, and `first` is the
// index of its first channel in the tensor.
template <typename Visit>
void for_each_pixel(const ImageExtents& e, Visit visit) {
  for (std::int64_t n = 0; n < e.n; ++n)
    for (std::int64_t pixel = 0; pixel < e.pixels(); ++pixel)
      visit(n * e.pixels() + pixel, n * e.c * e.pixels() + pixel);
}

}  // namespace

Kernel layer_norm_forward(const LayerNormProblem& problem, KernelRequest& request) {
  require_row_major("layer_norm_forward", request);
  require_layer_norm_forward(request);
  return host_kernel(
      [problem, e = image_extents(request.inputs[0].shape)](const BoundOperands& b) {
        for_each_pixel(e, [&](std::int64_t row, std::int64_t first) {
          double mean = 0, variance = 0;
          for (std::int64_t c = 0; c < e.c; ++c) mean += b.in(0)[first + c * e.pixels()];
          mean /= static_cast<double>(e.c);
          for (std::int64_t c = 0; c < e.c; ++c) {
            const double centred = b.in(0)[first + c * e.pixels()] - mean;
            variance += centred * centred;
          }
          const double invstd = 1 / std::sqrt(variance / static_cast<double>(e.c) + problem.epsilon);
          for (std::int64_t c = 0; c < e.c; ++c) {
            const std::int64_t at = first + c * e.pixels();
            b.out(0)[at] = static_cast<float>((b.in(0)[at] - mean) * invstd * b.in(1)[c] + b.in(2)[c]);
          }
          b.out(1)[row] = static_cast<float>(mean);
          b.out(1)[e.n * e.pixels() + row] = static_cast<float>(invstd);
        });
      },
      {{0, 0}});
}

Kernel layer_norm_backward(const LayerNormProblem&, KernelRequest& request) {
  require_row_major("layer_norm_backward", request);
  require_layer_norm_backward(request);
  return host_kernel(
      [e = image_extents(request.inputs[0].shape)](const BoundOperands& b) {
        std::vector<double> dgamma(e.c, 0.0), dbeta(e.c, 0.0);
        for_each_pixel(e, [&](std::int64_t row, std::int64_t first) {
          const double mean = b.in(3)[row], invstd = b.in(3)[e.n * e.pixels() + row];
          double g_mean = 0, gx_mean = 0;
          for (std::int64_t c = 0; c < e.c; ++c) {
            const std::int64_t at = first + c * e.pixels();
            const double xhat = (b.in(0)[at] - mean) * invstd, dy = b.in(2)[at];
            g_mean += dy * b.in(1)[c] / static_cast<double>(e.c);
            gx_mean += dy * b.in(1)[c] * xhat / static_cast<double>(e.c);
            dgamma[c] += dy * xhat;
            dbeta[c] += dy;
          }
          for (std::int64_t c = 0; c < e.c; ++c) {
            const std::int64_t at = first + c * e.pixels();
            const double xhat = (b.in(0)[at] - mean) * invstd;
            b.out(0)[at] =
                static_cast<float>(invstd * (double(b.in(2)[at]) * b.in(1)[c] - g_mean - xhat * gx_mean));
          }
        });
        for (std::int64_t c = 0; c < e.c; ++c) {
          b.out(1)[c] = static_cast<float>(dgamma[c]);
          b.out(2)[c] = static_cast<float>(dbeta[c]);
        }
      },
      {{0, 0}, {2, 0}});
}

}  // namespace convoy::kernels::reference
