// Convolutions in groups as products of tiles. A tile's filters (of backward_data, its channels) are of one bundle:
// groups side by side, as many as fill whole tiles. It reads the channels of its bundle alone, in whole blocks, so that
// all between bundles, where a dense convolution would have zeros, costs nothing; within a bundle, and where its last
// block ends in the next one, what is not of a filter's group is multiplied by zeros. (A channel that is not finite thus
// reaches the results of other groups of those.) CUDA builds only.
#pragma once

#include <algorithm>
#include <numeric>

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

// All of a convolution without groups is one bundle.
struct Bundles {
  int count;  // the last may have groups that are none
  int c, k;   // channels of x and filters of one
};

// For tiles of `extent` filters or, of backward_data, channels, of which a group has `width`.
inline Bundles bundles_for(const Geometry& g, int width, int extent) {
  const int merged = std::min(extent / std::gcd(width, extent), g.groups);
  return {(g.groups + merged - 1) / merged, merged * (g.c / g.groups), merged * (g.k / g.groups)};
}

// A copy of the filters, [bundles][rows][taps][inner]: a row is a filter and inner runs over its bundle's channels, or,
// transposed, the other way round. Zeros between groups, and where rows or inner are more than a bundle has.
struct BundledFilters {
  Bundles bundles;
  int rows, inner;
  bool transposed;

  std::int64_t elements(const Geometry& g) const {
    return std::int64_t{bundles.count} * rows * g.taps() * inner;
  }
  // Whether it is what the filters are anyway.
  bool is_plain(const Geometry& g) const {
    return !transposed && bundles.count == g.groups && rows == g.k / g.groups && inner == g.c / g.groups;
  }
};

void bundle_filters(const Geometry& g, const BundledFilters& layout, const void* filters, void* to,
                    std::size_t element_bytes, Stream stream);
// From the gradient of bundled filters, not transposed, [K][taps][inner].
void unbundle_gradient(const Geometry& g, const BundledFilters& layout, const float* bundled, float* to,
                       Stream stream);

}  // namespace convoy::kernels::conv
