// Local response normalisation of row_major and blocked images. The channels of a pixel are copied
// into a line with zeros at both ends, so that windows at the ends need no special case. aux holds
// the scale, k + alpha / size * (sum of squares), as f32 in the shape and layout of x.
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
constexpr std::int64_t kChannels = 4096;   // the longest line, in channels
constexpr std::int64_t kPixelPiece = 128;  // pixels that a thread computes at a time

// The extents of an image and of its windows. In a sample, channel c of pixel p is the element
// c / lanes * lanes * pixels + p * lanes + c % lanes.
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

// Calls visit(c, offset of channel c in the sample) for every channel of a pixel, padding included.
template <typename Visit>
[[gnu::always_inline]] inline void for_each_channel(const Geometry& g, std::int64_t pixel, Visit visit) {
  for (std::int64_t c = 0; c < g.padded; c += g.lanes) {
    const std::int64_t at = c * g.pixels + pixel * g.lanes;
#pragma omp simd
    for (std::int64_t lane = 0; lane < g.lanes; ++lane) visit(c + lane, at + lane);
  }
}

// For each channel c, sets sums[c] to the sum of `size` neighbouring values of the line. The first
// of them is at channel c - before.
[[gnu::always_inline]] inline void window_sums(const Geometry& g, const Line& line, std::int64_t before,
                                               float* sums) {
  std::fill_n(sums, g.padded, 0.0f);
  for (std::int64_t j = 0; j < g.size; ++j) {
    const float* values = line.values + j - before;
#pragma omp simd
    for (std::int64_t c = 0; c < g.padded; ++c) sums[c] += values[c];
  }
}

// Sets the line's padding channels to zero.
[[gnu::always_inline]] inline void clear_padding(const Geometry& g, float* line) {
  std::fill(line + g.channels, line + g.padded, 0.0f);
}

// Computes power = scale ^ -beta, and 0 in padding channels. For the usual beta of 0.75, square
// roots suffice, which are faster.
[[gnu::always_inline]] inline void powers(const Geometry& g, const float* scale, float* power) {
  if (g.beta == 0.75f) {
#pragma omp simd
    for (std::int64_t c = 0; c < g.padded; ++c) {
      const float root = std::sqrt(scale[c]);
      power[c] = 1 / (root * std::sqrt(root));
    }
  } else {
    for (std::int64_t c = 0; c < g.padded; ++c) power[c] = std::pow(scale[c], -g.beta);
  }
  clear_padding(g, power);
}

CONVOY_VECTORISED void forward_pixels(const Geometry& g, std::int64_t begin, std::int64_t end, const float* x,
                                      float* y, float* scale) {
  Line squares;
  float scales[kChannels], power[kChannels];
  for (std::int64_t pixel = begin; pixel < end; ++pixel) {
    for_each_channel(g, pixel, [&](std::int64_t c, std::int64_t at) { squares.values[c] = x[at] * x[at]; });
    window_sums(g, squares, g.size / 2, scales);
#pragma omp simd
    for (std::int64_t c = 0; c < g.padded; ++c) scales[c] = g.k + g.per_channel * scales[c];
    powers(g, scales, power);
    for_each_channel(g, pixel, [&](std::int64_t c, std::int64_t at) {
      scale[at] = scales[c];
      y[at] = x[at] * power[c];
    });
  }
}

CONVOY_VECTORISED void backward_pixels(const Geometry& g, std::int64_t begin, std::int64_t end,
                                       const float* x, const float* y, const float* scale, const float* dy,
                                       float* dx) {
  Line products;
  float scales[kChannels], power[kChannels], through_scales[kChannels];
  const float factor = 2 * g.per_channel * g.beta;
  for (std::int64_t pixel = begin; pixel < end; ++pixel) {
    for_each_channel(g, pixel, [&](std::int64_t c, std::int64_t at) {
      scales[c] = scale[at];
      products.values[c] = dy[at] * y[at] / scale[at];
    });
    clear_padding(g, products.values);
    // Channel c gets a gradient from each channel whose window contains c. These channels are the
    // mirror image of c's own window: they begin (size - 1) / 2 channels before c.
    window_sums(g, products, (g.size - 1) / 2, through_scales);
    powers(g, scales, power);
    for_each_channel(g, pixel, [&](std::int64_t c, std::int64_t at) {
      dx[at] = dy[at] * power[c] - factor * x[at] * through_scales[c];
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

// Calls body(sample, begin, end) in parallel for ranges [begin, end) of the pixels of each sample.
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
  match_layout(operation, request.outputs[0], request.inputs[0]);
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
  match_layout(operation, request.outputs[0], request.inputs[0]);
  for (TensorDesc& input : request.inputs) {
    match_layout(operation, input, request.outputs[0]);
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
