// Pools in plain loops. The output aux has, for each maximum, its row-major index in the plane of
// x. It is i32 in the shape of y.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/device/host_kernel.h"
#include "kernels/pool/pool.h"

namespace convoy::kernels::reference {
namespace {

struct Extents {
  std::int64_t planes, h, w, oh, ow;
};

// The part of an output's window that is inside the image, and the divisor of an average.
struct Window {
  std::int64_t top, bottom, left, right;
  double divisor;
};

Window window_at(const PoolProblem& problem, const Extents& e, std::int64_t oh, std::int64_t ow) {
  Window window{};
  window.top = oh * problem.stride[0] - problem.padding[0];
  window.left = ow * problem.stride[1] - problem.padding[1];
  window.bottom = std::min(window.top + problem.kernel[0], e.h + problem.padding[0]);
  window.right = std::min(window.left + problem.kernel[1], e.w + problem.padding[1]);
  const auto area = [&] { return double(window.bottom - window.top) * double(window.right - window.left); };
  window.divisor = area();
  window.top = std::max<std::int64_t>(window.top, 0);
  window.left = std::max<std::int64_t>(window.left, 0);
  window.bottom = std::min(window.bottom, e.h);
  window.right = std::min(window.right, e.w);
  if (!problem.count_include_pad) window.divisor = area();
  return window;
}

// Calls visit(offset of the plane in x, index of the output in y, window) for every output.
template <typename Visit>
void for_each_output(const PoolProblem& problem, const Extents& e, Visit visit) {
  for (std::int64_t plane = 0; plane < e.planes; ++plane)
    for (std::int64_t oh = 0; oh < e.oh; ++oh)
      for (std::int64_t ow = 0; ow < e.ow; ++ow)
        visit(plane * e.h * e.w, (plane * e.oh + oh) * e.ow + ow, window_at(problem, e, oh, ow));
}

Extents extents_of(const char* operation, const PoolProblem& problem, const TensorDesc& x,
                   const TensorDesc& y) {
  require_shape(operation, "y", y, pool_output_shape(problem, x.shape));
  return {x.shape[0] * x.shape[1], x.shape[2], x.shape[3], y.shape[2], y.shape[3]};
}

void max_forward(const PoolProblem& problem, const Extents& e, const BoundOperands& operands) {
  const float* x = operands.in(0);
  for_each_output(problem, e, [&](std::int64_t plane, std::int64_t out, const Window& window) {
    float best = -std::numeric_limits<float>::infinity();
    std::int64_t index = window.top * e.w + window.left;
    for (std::int64_t h = window.top; h < window.bottom; ++h)
      for (std::int64_t w = window.left; w < window.right; ++w)
        if (const float value = x[plane + h * e.w + w]; value > best || std::isnan(value)) {
          best = value;
          index = h * e.w + w;
        }
    operands.out(0)[out] = problem.relu && best < 0 ? 0 : best;
    operands.out<std::int32_t>(1)[out] = static_cast<std::int32_t>(index);
  });
}

void average_forward(const PoolProblem& problem, const Extents& e, const BoundOperands& operands) {
  const float* x = operands.in(0);
  for_each_output(problem, e, [&](std::int64_t plane, std::int64_t out, const Window& window) {
    double sum = 0;
    for (std::int64_t h = window.top; h < window.bottom; ++h)
      for (std::int64_t w = window.left; w < window.right; ++w) sum += x[plane + h * e.w + w];
    operands.out(0)[out] = static_cast<float>(sum / window.divisor);
  });
}

std::vector<double> zeros(const Extents& e) { return std::vector<double>(e.planes * e.h * e.w, 0.0); }

void store(const std::vector<double>& from, float* to) {
  std::transform(from.begin(), from.end(), to, [](double value) { return static_cast<float>(value); });
}

void max_backward(const PoolProblem& problem, const Extents& e, const BoundOperands& operands) {
  std::vector<double> dx = zeros(e);
  for_each_output(problem, e, [&](std::int64_t plane, std::int64_t out, const Window&) {
    dx[plane + operands.in<std::int32_t>(0)[out]] += operands.in(1)[out];
  });
  store(dx, operands.out(0));
}

void average_backward(const PoolProblem& problem, const Extents& e, const BoundOperands& operands) {
  std::vector<double> dx = zeros(e);
  for_each_output(problem, e, [&](std::int64_t plane, std::int64_t out, const Window& window) {
    for (std::int64_t h = window.top; h < window.bottom; ++h)
      for (std::int64_t w = window.left; w < window.right; ++w)
        dx[plane + h * e.w + w] += operands.in(0)[out] / window.divisor;
  });
  store(dx, operands.out(0));
}

}  // namespace

Kernel pool_forward(const PoolProblem& problem, KernelRequest& request) {
  const bool max = problem.kind == PoolKind::max;
  require_counts("pool_forward", request, 1, max ? 2 : 1);
  if (max) request.outputs[1] = {DType::i32, request.outputs[0].shape, Layout::row_major, nullptr};
  require_row_major("pool_forward", request);
  const Extents e = extents_of("pool_forward", problem, request.inputs[0], request.outputs[0]);
  return host_kernel([=](const BoundOperands& operands) {
    max ? max_forward(problem, e, operands) : average_forward(problem, e, operands);
  });
}

Kernel pool_backward(const PoolProblem& problem, KernelRequest& request) {
  const bool max = problem.kind == PoolKind::max;
  require_counts("pool_backward", request, max ? 2 : 1, 1);
  require_row_major("pool_backward", request);
  const Extents e = extents_of("pool_backward", problem, request.outputs[0], request.inputs[max ? 1 : 0]);
  return host_kernel([=](const BoundOperands& operands) {
    max ? max_backward(problem, e, operands) : average_backward(problem, e, operands);
  });
}

}  // namespace convoy::kernels::reference
