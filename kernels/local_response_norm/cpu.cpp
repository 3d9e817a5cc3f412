// Local response normalisation of row_major and blocked images. The channels of a pixel are gathered into a
// line between zeros, summed over the window there, and scattered back. aux: the scale k + alpha / size * sum
// of squares, f32, like x.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/device/host_kernel.h"
#include "kernels/device/parallel.h"
#include "kernels/local_response_norm/local_response_norm.h"

namespace convoy::kernels::cpu {
namespace {

constexpr std::int64_t kMargin = 64;       // zeros on each side of a line
constexpr std::int64_t kChannels = 8192;   // the longest line
constexpr std::int64_t kPixelPiece = 128;  // pixels that a thread takes at a time

// Channel c of pixel p of a sample lies at c / lanes * lanes * pixels + p * lanes + c % lanes.
struct Geometry {
  std::int64_t samples, channels, padded, pixels, lanes;
  std::int64_t size;
  float k, beta, per_channel;  // per_channel: alpha / size
  std::int64_t sample() const { return padded * pixels; }
};

struct Line {
  float storage[kMargin + kChannels + kMargin] = {};
  float* values = storage + kMargin;
};

// Calls visit(channel of the block's first lane, its offset in the sample) for the blocks of a pixel.
template <typename Visit>
[[gnu::always_inline]] inline void for_each_block(const Geometry& g, std::int64_t pixel, Visit visit) {
  for (std::int64_t c = 0; c < g.padded; c += g.lanes) visit(c, c * g.pixels + pixel * g.lanes);
}

[[gnu::always_inline]] inline float power(float scale, float beta) {
  if (beta == 0.75f) {
    const float root = std::sqrt(scale);
    return 1 / (root * std::sqrt(root));
  }
  return std::pow(scale, -beta);
}

// Sum over `size` values of the line that starts `before` channels ahead of c.
[[gnu::always_inline]] inline float window_sum(const Geometry& g, const Line& line, std::int64_t c,
                                               std::int64_t before) {
  const float* first = line.values + c - before;
  float sum = 0;
  for (std::int64_t j = 0; j < g.size; ++j) sum += first[j];
  return sum;
}

CONVOY_VECTORISED void forward_pixels(const Geometry& g, std::int64_t begin, std::int64_t end, const float* x,
                                      float* y, float* scale) {
  Line squares;
  for (std::int64_t pixel = begin; pixel < end; ++pixel) {
    for_each_block(g, pixel, [&](std::int64_t c, std::int64_t at) {
#pragma omp simd
      for (std::int64_t lane = 0; lane < g.lanes; ++lane)
        squares.values[c + lane] = x[at + lane] * x[at + lane];
    });
    for_each_block(g, pixel, [&](std::int64_t c, std::int64_t at) {
#pragma omp simd
      for (std::int64_t lane = 0; lane < g.lanes; ++lane) {
        const float s = g.k + g.per_channel * window_sum(g, squares, c + lane, g.size / 2);
        scale[at + lane] = s;
        y[at + lane] = c + lane < g.channels ? x[at + lane] * power(s, g.beta) : 0;
      }
    });
  }
}

CONVOY_VECTORISED void backward_pixels(const Geometry& g, std::int64_t begin, std::int64_t end,
                                       const float* x, const float* y, const float* scale, const float* dy,
                                       float* dx) {
  Line products;
  const float factor = 2 * g.per_channel * g.beta;
  for (std::int64_t pixel = begin; pixel < end; ++pixel) {
    for_each_block(g, pixel, [&](std::int64_t c, std::int64_t at) {
#pragma omp simd
      for (std::int64_t lane = 0; lane < g.lanes; ++lane)
        products.values[c + lane] =
            c + lane < g.channels ? dy[at + lane] * y[at + lane] / scale[at + lane] : 0;
    });
    // The windows that a channel stands in are the forward window mirrored.
    for_each_block(g, pixel, [&](std::int64_t c, std::int64_t at) {
#pragma omp simd
      for (std::int64_t lane = 0; lane < g.lanes; ++lane) {
        const float through_scales =
            factor * x[at + lane] * window_sum(g, products, c + lane, (g.size - 1) / 2);
        const float direct = dy[at + lane] * power(scale[at + lane], g.beta);
        dx[at + lane] = c + lane < g.channels ? direct - through_scales : 0;
      }
    });
  }
}

Geometry geometry_of(const char* operation, const LocalResponseNormProblem& problem, const TensorDesc& x) {
  const ImageExtents e = image_extents(x.shape);
  const std::int64_t lanes = channel_lanes(operation, x);
  if (problem.size < 1 || problem.size > kMargin || e.c > kChannels)
    throw std::invalid_argument(fmt::format("{}: size {} and {} channels, expected at most {} and {}",
                                            operation, problem.size, e.c, kMargin, kChannels));
  return {e.n,        e.c,          (e.c + lanes - 1) / lanes * lanes,
          e.pixels(), lanes,        problem.size,
          problem.k,  problem.beta, problem.alpha / static_cast<float>(problem.size)};
}

// body(sample, first pixel, last pixel) in parallel.
template <typename Body>
void for_each_piece(const Geometry& g, const Body& body) {
  const std::int64_t pieces = (g.pixels + kPixelPiece - 1) / kPixelPiece;
  parallel_for(g.samples * pieces, [&](std::int64_t i) {
    const std::int64_t begin = i % pieces * kPixelPiece;
    body(i / pieces, begin, std::min(g.pixels, begin + kPixelPiece));
  });
}

}  // namespace

Kernel local_response_norm_forward(const LocalResponseNormProblem& problem, KernelRequest& request) {
  const char* operation = "local_response_norm_forward";
  require_counts(operation, request, 1, 2);
  request.outputs[1] = request.inputs[0];
  settle_like(operation, request.outputs[0], request.inputs[0]);
  require_shape(operation, "y", request.outputs[0], request.inputs[0].shape);
  return host_kernel([g = geometry_of(operation, problem, request.inputs[0])](const BoundOperands& operands) {
    for_each_piece(g, [&](std::int64_t n, std::int64_t begin, std::int64_t end) {
      const std::int64_t at = n * g.sample();
      forward_pixels(g, begin, end, operands.in(0) + at, operands.out(0) + at, operands.out(1) + at);
    });
  });
}

Kernel local_response_norm_backward(const LocalResponseNormProblem& problem, KernelRequest& request) {
  const char* operation = "local_response_norm_backward";
  require_counts(operation, request, 4, 1);
  settle_like(operation, request.outputs[0], request.inputs[0]);
  for (TensorDesc& input : request.inputs) {
    settle_like(operation, input, request.outputs[0]);
    require_shape(operation, "an input", input, request.outputs[0].shape);
  }
  const auto body = [g = geometry_of(operation, problem, request.inputs[0])](const BoundOperands& operands) {
    for_each_piece(g, [&](std::int64_t n, std::int64_t begin, std::int64_t end) {
      const std::int64_t at = n * g.sample();
      backward_pixels(g, begin, end, operands.in(0) + at, operands.in(1) + at, operands.in(2) + at,
                      operands.in(3) + at, operands.out(0) + at);
    });
  };
  return host_kernel(body, {{3, 0}});
}

}  // namespace convoy::kernels::cpu
