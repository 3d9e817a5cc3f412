// Pools row_major and blocked images, plane by plane (kernels/device/planes.h). The output aux says
// where each maximum is in its window, as row * kernel width + column, in y's layout. An element of
// aux is one byte if windows have at most 256 positions.
#include <algorithm>
#include <limits>

#include "kernels/device/host_kernel.h"
#include "kernels/device/parallel.h"
#include "kernels/pool/pool.h"

namespace convoy::kernels::cpu {
namespace {

struct Geometry {
  PoolProblem problem;
  std::int64_t h, w, oh, ow;
};

// The window of an output: its corner, and its rows and columns inside the image, counted from the
// corner. `inverse` times the sum of the window is the average.
struct Window {
  std::int64_t top, left;
  int row_begin, row_end, column_begin, column_end;
  float inverse;
};

inline Window window_at(const Geometry& g, std::int64_t oh, std::int64_t ow) {
  const PoolProblem& p = g.problem;
  const auto clip = [](std::int64_t first, std::int64_t extent, int kernel, int& begin, int& end) {
    begin = static_cast<int>(std::max<std::int64_t>(0, -first));
    end = static_cast<int>(std::min<std::int64_t>(kernel, extent - first));
  };
  Window v{oh * p.stride[0] - p.padding[0], ow * p.stride[1] - p.padding[1], 0, 0, 0, 0, 0};
  clip(v.top, g.h, p.kernel[0], v.row_begin, v.row_end);
  clip(v.left, g.w, p.kernel[1], v.column_begin, v.column_end);
  std::int64_t area = std::int64_t{v.row_end - v.row_begin} * (v.column_end - v.column_begin);
  if (p.count_include_pad)
    area = std::min<std::int64_t>(p.kernel[0], g.h + p.padding[0] - v.top) *
           std::min<std::int64_t>(p.kernel[1], g.w + p.padding[1] - v.left);
  v.inverse = 1.0f / static_cast<float>(area);
  return v;
}

// Each function below computes one plane of y or dx.
template <int kLanes, typename Index>
CONVOY_VECTORISED void max_forward(const Geometry& g, const float* x, float* y, Index* aux) {
  for (std::int64_t oh = 0; oh < g.oh; ++oh)
    for (std::int64_t ow = 0; ow < g.ow; ++ow, y += kLanes, aux += kLanes) {
      const Window v = window_at(g, oh, ow);
      float best[kLanes];
      std::int32_t at[kLanes];
      std::fill_n(best, kLanes, -std::numeric_limits<float>::infinity());
      std::fill_n(at, kLanes, v.row_begin * g.problem.kernel[1] + v.column_begin);
      for (int row = v.row_begin; row < v.row_end; ++row)
        for (int column = v.column_begin; column < v.column_end; ++column) {
          const float* pixel = x + ((v.top + row) * g.w + v.left + column) * kLanes;
          const std::int32_t position = row * g.problem.kernel[1] + column;
#pragma omp simd
          for (int lane = 0; lane < kLanes; ++lane) {
            // A NaN counts as larger than any number, so that the result is NaN.
            const bool better = (pixel[lane] > best[lane]) | (pixel[lane] != pixel[lane]);
            best[lane] = better ? pixel[lane] : best[lane];
            at[lane] = better ? position : at[lane];
          }
        }
      const float least = g.problem.relu ? 0.0f : -std::numeric_limits<float>::infinity();
      for (int lane = 0; lane < kLanes; ++lane) y[lane] = best[lane] < least ? least : best[lane];
      for (int lane = 0; lane < kLanes; ++lane) aux[lane] = static_cast<Index>(at[lane]);
    }
}

template <int kLanes, typename Index>
CONVOY_VECTORISED void max_backward(const Geometry& g, const Index* aux, const float* dy, float* dx) {
  std::fill_n(dx, g.h * g.w * kLanes, 0.0f);
  for (std::int64_t oh = 0; oh < g.oh; ++oh)
    for (std::int64_t ow = 0; ow < g.ow; ++ow, dy += kLanes, aux += kLanes) {
      const Window v = window_at(g, oh, ow);
      for (int row = v.row_begin; row < v.row_end; ++row)
        for (int column = v.column_begin; column < v.column_end; ++column) {
          float* pixel = dx + ((v.top + row) * g.w + v.left + column) * kLanes;
          const std::int32_t position = row * g.problem.kernel[1] + column;
#pragma omp simd
          for (int lane = 0; lane < kLanes; ++lane)
            pixel[lane] += static_cast<std::int32_t>(aux[lane]) == position ? dy[lane] : 0.0f;
        }
    }
}

template <int kLanes>
CONVOY_VECTORISED void average_forward(const Geometry& g, const float* x, float* y) {
  for (std::int64_t oh = 0; oh < g.oh; ++oh)
    for (std::int64_t ow = 0; ow < g.ow; ++ow, y += kLanes) {
      const Window v = window_at(g, oh, ow);
      float sum[kLanes] = {};
      for (int row = v.row_begin; row < v.row_end; ++row)
        for (int column = v.column_begin; column < v.column_end; ++column) {
          const float* pixel = x + ((v.top + row) * g.w + v.left + column) * kLanes;
#pragma omp simd
          for (int lane = 0; lane < kLanes; ++lane) sum[lane] += pixel[lane];
        }
      for (int lane = 0; lane < kLanes; ++lane) y[lane] = sum[lane] * v.inverse;
    }
}

template <int kLanes>
CONVOY_VECTORISED void average_backward(const Geometry& g, const float* dy, float* dx) {
  std::fill_n(dx, g.h * g.w * kLanes, 0.0f);
  for (std::int64_t oh = 0; oh < g.oh; ++oh)
    for (std::int64_t ow = 0; ow < g.ow; ++ow, dy += kLanes) {
      const Window v = window_at(g, oh, ow);
      for (int row = v.row_begin; row < v.row_end; ++row)
        for (int column = v.column_begin; column < v.column_end; ++column) {
          float* pixel = dx + ((v.top + row) * g.w + v.left + column) * kLanes;
#pragma omp simd
          for (int lane = 0; lane < kLanes; ++lane) pixel[lane] += dy[lane] * v.inverse;
        }
    }
}

// Makes a kernel of max pooling, forward or backward, over all planes. The planes follow one
// another in memory.
template <int kLanes, typename Index>
Kernel max_kernel(bool forward, const Geometry& g, std::int64_t planes) {
  const std::int64_t in = g.h * g.w * kLanes, out = g.oh * g.ow * kLanes;
  return host_kernel([=](const BoundOperands& operands) {
    parallel_for(planes, [&](std::int64_t i) {
      if (forward)
        max_forward<kLanes>(g, operands.in(0) + i * in, operands.out(0) + i * out,
                            operands.out<Index>(1) + i * out);
      else
        max_backward<kLanes>(g, operands.in<Index>(0) + i * out, operands.in(1) + i * out,
                             operands.out(0) + i * in);
    });
  });
}

template <int kLanes>
Kernel kernel_of(bool forward, const Geometry& g, std::int64_t planes, DType aux) {
  if (g.problem.kind == PoolKind::max)
    return aux == DType::u8 ? max_kernel<kLanes, std::uint8_t>(forward, g, planes)
                            : max_kernel<kLanes, std::int32_t>(forward, g, planes);
  const std::int64_t in = g.h * g.w * kLanes, out = g.oh * g.ow * kLanes;
  return host_kernel([=](const BoundOperands& operands) {
    parallel_for(planes, [&](std::int64_t i) {
      if (forward)
        average_forward<kLanes>(g, operands.in(0) + i * in, operands.out(0) + i * out);
      else
        average_backward<kLanes>(g, operands.in(0) + i * out, operands.out(0) + i * in);
    });
  });
}

Kernel make(const char* operation, bool forward, const PoolProblem& problem, const TensorDesc& x,
            const TensorDesc& y, DType aux) {
  require_shape(operation, "y", y, pool_output_shape(problem, x.shape));
  const Geometry g{problem, x.shape[2], x.shape[3], y.shape[2], y.shape[3]};
  const std::int64_t lanes = channel_lanes(operation, x);
  const std::int64_t planes = x.shape[0] * ((x.shape[1] + lanes - 1) / lanes);
  if (lanes == 16) return kernel_of<16>(forward, g, planes, aux);
  if (lanes == 8) return kernel_of<8>(forward, g, planes, aux);
  return kernel_of<1>(forward, g, planes, aux);
}

DType aux_type(const PoolProblem& problem) {
  return std::int64_t{problem.kernel[0]} * problem.kernel[1] <= 256 ? DType::u8 : DType::i32;
}

}  // namespace

Kernel pool_forward(const PoolProblem& problem, KernelRequest& request) {
  const bool max = problem.kind == PoolKind::max;
  require_counts("pool_forward", request, 1, max ? 2 : 1);
  match_layout("pool_forward", request.outputs[0], request.inputs[0]);
  if (max)
    request.outputs[1] = {aux_type(problem), request.outputs[0].shape, request.inputs[0].layout, nullptr};
  return make("pool_forward", true, problem, request.inputs[0], request.outputs[0], aux_type(problem));
}

Kernel pool_backward(const PoolProblem& problem, KernelRequest& request) {
  const bool max = problem.kind == PoolKind::max;
  require_counts("pool_backward", request, max ? 2 : 1, 1);
  const TensorDesc& dy = request.inputs[max ? 1 : 0];
  if (max) require_dtype("pool_backward", "aux", request.inputs[0], aux_type(problem));
  if (max) match_layout("pool_backward", request.inputs[0], dy);
  match_layout("pool_backward", request.outputs[0], dy);
  return make("pool_backward", false, problem, request.outputs[0], dy, aux_type(problem));
}

}  // namespace convoy::kernels::cpu
