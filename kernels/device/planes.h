// Reads images on the host as planes. A plane holds all pixels of one channel (row_major), or of
// one block of 8 or 16 channels that are neighbours in memory (blocked layouts).
#pragma once

#include <algorithm>

#include "kernels/device/host_kernel.h"
#include "kernels/device/parallel.h"

namespace convoy::kernels {

struct Planes {
  std::int64_t samples, channels, blocks, pixels, lanes;

  std::int64_t count() const { return samples * blocks; }
  std::int64_t elements() const { return pixels * lanes; }  // the elements of one plane
  std::int64_t padded_channels() const { return blocks * lanes; }
  // Returns how many channels of plane i are not padding.
  std::int64_t used_lanes(std::int64_t i) const { return std::min(lanes, channels - i % blocks * lanes); }
};

// Describes a tensor as planes. A tensor [N, C] has one pixel. Throws for layouts other than
// row_major and blocked.
inline Planes planes_of(std::string_view operation, const TensorDesc& desc) {
  const ImageExtents e = image_extents(desc.shape);
  const std::int64_t lanes = channel_lanes(operation, desc);
  return {e.n, e.c, (e.c + lanes - 1) / lanes, e.pixels(), lanes};
}

// Calls body(i) for all planes in parallel.
template <typename Body>
void for_each_plane(const Planes& planes, const Body& body) {
  const std::int64_t piece = std::max<std::int64_t>(1, kPiece / planes.elements());
  parallel_pieces(planes.count(), piece, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

// Calls visit(integral_constant<int, lanes>), so that the compiler knows the number of lanes in the
// loops of `visit`.
template <typename Visit>
auto with_lanes(std::int64_t lanes, Visit visit) {
  if (lanes == 16) return visit(std::integral_constant<int, 16>{});
  if (lanes == 8) return visit(std::integral_constant<int, 8>{});
  return visit(std::integral_constant<int, 1>{});
}

// Adds term(element, lane) to sums[lane] for all elements of a plane. Adds up runs of some hundred
// terms in float, and the sums of the runs in double. Use this in CONVOY_VECTORISED functions.
template <int kLanes, typename Term>
[[gnu::always_inline]] inline void sum_plane(std::int64_t pixels, const Term& term, double* sums) {
  constexpr int kWidth = kLanes == 1 ? 16 : kLanes;  // number of sums that are added up independently
  constexpr std::int64_t kRun = 256 * kWidth;
  const std::int64_t count = pixels * kLanes;
  for (std::int64_t begin = 0; begin < count; begin += kRun) {
    const std::int64_t length = std::min(kRun, count - begin), whole = length / kWidth * kWidth;
    float run[kWidth] = {};
    for (std::int64_t i = begin; i < begin + whole; i += kWidth)
#pragma omp simd
      for (int k = 0; k < kWidth; ++k) run[k] += term(i + k, kLanes == 1 ? 0 : k);
    for (std::int64_t i = begin + whole; i < begin + length; ++i) run[0] += term(i, 0);
    for (int k = 0; k < kWidth; ++k) sums[k % kLanes] += run[k];
  }
}

// `sums`, [samples, blocks * lanes], has a sum for each plane. Adds them up over the samples, and
// writes the results to `to`, [channels].
inline void add_samples(const Planes& planes, const double* sums, float* to) {
  for (std::int64_t c = 0; c < planes.channels; ++c) {
    double sum = 0;
    for (std::int64_t n = 0; n < planes.samples; ++n) sum += sums[n * planes.padded_channels() + c];
    to[c] = static_cast<float>(sum);
  }
}

}  // namespace convoy::kernels
