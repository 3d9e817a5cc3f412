// Group normalisation in plain loops. A group of a sample is one range of elements.
#include <cmath>
#include <vector>

#include "kernels/device/host_kernel.h"
#include "kernels/group_norm/group_norm.h"

namespace convoy::kernels::reference {

Kernel group_norm_forward(const GroupNormProblem& problem, KernelRequest& request) {
  require_row_major("group_norm_forward", request);
  require_group_norm_forward(problem, request);
  const ImageExtents e = image_extents(request.inputs[0].shape);
  return host_kernel(
      [=](const BoundOperands& b) {
        const std::int64_t all = e.n * problem.groups, count = e.c / problem.groups * e.pixels();
        for (std::int64_t group = 0; group < all; ++group) {
          const float* x = b.in(0) + group * count;
          double mean = 0, variance = 0;
          for (std::int64_t i = 0; i < count; ++i) mean += x[i] / static_cast<double>(count);
          for (std::int64_t i = 0; i < count; ++i)
            variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(count);
          const double invstd = 1 / std::sqrt(variance + problem.epsilon);
          for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t c = (group * count + i) / e.pixels() % e.c;
            b.out(0)[group * count + i] =
                static_cast<float>((x[i] - mean) * invstd * b.in(1)[c] + b.in(2)[c]);
          }
          b.out(1)[group] = static_cast<float>(mean);
          b.out(1)[all + group] = static_cast<float>(invstd);
        }
      },
      {{0, 0}});
}

Kernel group_norm_backward(const GroupNormProblem& problem, KernelRequest& request) {
  require_row_major("group_norm_backward", request);
  require_group_norm_backward(problem, request);
  const ImageExtents e = image_extents(request.inputs[0].shape);
  return host_kernel(
      [=](const BoundOperands& b) {
        const std::int64_t all = e.n * problem.groups, count = e.c / problem.groups * e.pixels();
        std::vector<double> dgamma(e.c, 0.0), dbeta(e.c, 0.0);
        for (std::int64_t group = 0; group < all; ++group) {
          const double mean = b.in(3)[group], invstd = b.in(3)[all + group];
          double g_mean = 0, gx_mean = 0;
          for (std::int64_t at = group * count; at < (group + 1) * count; ++at) {
            const std::int64_t c = at / e.pixels() % e.c;
            const double xhat = (b.in(0)[at] - mean) * invstd, dy = b.in(2)[at];
            g_mean += dy * b.in(1)[c] / static_cast<double>(count);
            gx_mean += dy * b.in(1)[c] * xhat / static_cast<double>(count);
            dgamma[c] += dy * xhat;
            dbeta[c] += dy;
          }
          for (std::int64_t at = group * count; at < (group + 1) * count; ++at) {
            const double xhat = (b.in(0)[at] - mean) * invstd;
            const double g = double(b.in(2)[at]) * b.in(1)[at / e.pixels() % e.c];
            b.out(0)[at] = static_cast<float>(invstd * (g - g_mean - xhat * gx_mean));
          }
        }
        for (std::int64_t c = 0; c < e.c; ++c) {
          b.out(1)[c] = static_cast<float>(dgamma[c]);
          b.out(2)[c] = static_cast<float>(dbeta[c]);
        }
      },
      {{0, 0}, {2, 0}});
}

}  // namespace convoy::kernels::reference
