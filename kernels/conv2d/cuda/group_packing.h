// Packs the groups of a convolution for kernels without groups. A pack is several neighbouring
// groups, computed as one dense convolution: each filter gets zero weights for the channels of the
// other groups in its pack. Because NaN or infinity times zero is NaN, an element that is not
// finite may reach other groups of its pack. CUDA builds only.
#pragma once

#include <algorithm>
#include <numeric>

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

// The packs of a convolution. Without groups there is one pack.
struct GroupPacking {
  int count;  // how many packs there are; the last one may have empty groups
  int c, k;   // how many channels of x, and how many filters, a pack has
};

// Packs groups so that packs fill whole tiles. A group has `width` filters (in backward_data,
// channels), and a tile has room for `extent` of them.
inline GroupPacking pack_groups(const Geometry& g, int width, int extent) {
  const int merged = std::min(extent / std::gcd(width, extent), g.groups);
  return {(g.groups + merged - 1) / merged, merged * (g.c / g.groups), merged * (g.k / g.groups)};
}

// A copy of the filters, [packs][rows][taps][inner]. A row is a filter, and `inner` are the
// channels of its pack; if transposed, a row is a channel and `inner` are filters. All elements
// that no filter has are zero.
struct PackedFilters {
  GroupPacking packing;
  int rows, inner;
  bool transposed;
  bool shared = false;  // the groups share one set of filters

  std::int64_t elements(const Geometry& g) const {
    return std::int64_t{packing.count} * rows * g.taps() * inner;
  }
  // Returns whether the copy would equal the filters, so that it is not needed.
  bool is_plain(const Geometry& g) const {
    return !transposed && !shared && packing.count == g.groups && rows == g.k / g.groups &&
           inner == g.c / g.groups;
  }
};

// Copies the filters into this layout and, unless it is null, the bias to `bias_to`, [K]. If groups
// share filters, both are repeated for each group.
void pack_filters(const Geometry& g, const PackedFilters& layout, const void* filters, void* to,
                  const float* bias, float* bias_to, std::size_t element_bytes, Stream stream,
                  Members members);
// Copies the gradient of the filters to `to`, from `packed`, the gradient of packed filters
// [K][taps][inner]. If groups share filters, adds up their gradients.
void unpack_gradient(const Geometry& g, const PackedFilters& layout, const float* packed, float* to,
                     Stream stream, Members members);

}  // namespace convoy::kernels::conv
