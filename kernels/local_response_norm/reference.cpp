// Local response normalisation in plain loops. aux holds the scale, k + alpha / size * sum of
// squares, as f32 in the shape of x.
#include <algorithm>
#include <cmath>

#include "kernels/device/host_kernel.h"
#include "kernels/local_response_norm/local_response_norm.h"

namespace convoy::kernels::reference {
namespace {

// Returns the sum of value(index) over the channels [c - before, c + after] of a pixel, where c is
// the channel of the argument `index`.
template <typename Value>
double sum_channels(const ImageExtents& e, std::int64_t index, std::int64_t before, std::int64_t after,
                    Value value) {
  const std::int64_t c = index / e.pixels() % e.c;
  double sum = 0;
  for (std::int64_t j = std::max<std::int64_t>(0, c - before); j <= std::min(e.c - 1, c + after); ++j)
    sum += value(index + (j - c) * e.pixels());
  return sum;
}

}  // namespace

Kernel local_response_norm_forward(const LocalResponseNormProblem& problem, KernelRequest& request) {
  const char* operation = "local_response_norm_forward";
  require_counts(operation, request, 1, 2);
  request.outputs[1] = {DType::f32, request.inputs[0].shape, Layout::row_major, nullptr};
  require_row_major(operation, request);
  require_shape(operation, "y", request.outputs[0], request.inputs[0].shape);
  return host_kernel([problem, e = image_extents(request.inputs[0].shape)](const BoundOperands& operands) {
    const float* x = operands.in(0);
    const std::int64_t before = problem.size / 2, after = (problem.size - 1) / 2;
    for (std::int64_t i = 0; i < e.n * e.c * e.pixels(); ++i) {
      const double squares =
          sum_channels(e, i, before, after, [&](std::int64_t j) { return double(x[j]) * x[j]; });
      const double scale = problem.k + double(problem.alpha) / problem.size * squares;
      operands.out(0)[i] = static_cast<float>(x[i] * std::pow(scale, -double(problem.beta)));
      operands.out(1)[i] = static_cast<float>(scale);
    }
  });
}

Kernel local_response_norm_backward(const LocalResponseNormProblem& problem, KernelRequest& request) {
  const char* operation = "local_response_norm_backward";
  require_counts(operation, request, 4, 1);
  require_row_major(operation, request);
  for (const TensorDesc& input : request.inputs)
    require_shape(operation, "an input", input, request.outputs[0].shape);
  return host_kernel(
      [problem, e = image_extents(request.inputs[0].shape)](const BoundOperands& operands) {
        const float *x = operands.in(0), *y = operands.in(1), *scale = operands.in(2), *dy = operands.in(3);
        // Channel c gets a gradient from each channel whose window contains c. These are the
        // channels [c - before, c + after], the mirror image of c's own window.
        const std::int64_t before = (problem.size - 1) / 2, after = problem.size / 2;
        const double factor = 2.0 * problem.alpha * problem.beta / problem.size;
        std::vector<float> dx(e.n * e.c * e.pixels());
        for (std::int64_t i = 0; i < e.n * e.c * e.pixels(); ++i) {
          const double through_scales = sum_channels(
              e, i, before, after, [&](std::int64_t j) { return double(dy[j]) * y[j] / scale[j]; });
          dx[i] = static_cast<float>(dy[i] * std::pow(double(scale[i]), -double(problem.beta)) -
                                     factor * x[i] * through_scales);
        }
        std::copy(dx.begin(), dx.end(), operands.out(0));
      },
      {{3, 0}});
}

}  // namespace convoy::kernels::reference
