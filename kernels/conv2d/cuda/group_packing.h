// Packs the groups of a convolution into tiles. Neighbouring groups form a pack that fills whole
// tiles. A tile has the filters (in backward_data, the channels) of one pack, and reads only the
// channels of this pack, in whole blocks. So zeros outside packs cost nothing. Within a pack, each
// filter is multiplied by the elements of all groups, with zeros in place of weights for all groups
// but its own. Because NaN or infinity times zero is NaN, an element that is not finite may reach
// other groups of its pack. CUDA builds only.
#pragma once

#include <algorithm>
#include <numeric>

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

// The packs of a convolution. Without groups there is one pack.
struct GroupPacking {
  int count;  // the number of packs, of which the last may have empty groups
  int c, k;   // channels of x, and filters, in a pack
};

// Packs groups for tiles. A group has `width` filters (in backward_data, channels), and a tile has
// room for `extent` of them.
inline GroupPacking pack_groups(const Geometry& g, int width, int extent) {
  const int merged = std::min(extent / std::gcd(width, extent), g.groups);
  return {(g.groups + merged - 1) / merged, merged * (g.c / g.groups), merged * (g.k / g.groups)};
}

// The layout of a copy of the filters, [packs][rows][taps][inner]. A row is a filter, and `inner`
// runs over the channels of the filter's pack. If transposed, a row is a channel, and `inner` runs
// over the filters. Channels of other groups in the pack, and padding, hold zeros.
struct PackedFilters {
  GroupPacking packing;
  int rows, inner;
  bool transposed;
  bool shared = false;  // all groups have the same filters, of which there is one copy

  std::int64_t elements(const Geometry& g) const {
    return std::int64_t{packing.count} * rows * g.taps() * inner;
  }
  // Returns whether the copy would equal the filters, so that none is needed.
  bool is_plain(const Geometry& g) const {
    return !transposed && !shared && packing.count == g.groups && rows == g.k / g.groups &&
           inner == g.c / g.groups;
  }
};

// Copies the filters into this layout. If `bias` is not null, also copies it to `bias_to`, [K],
// once per group if filters are shared.
void pack_filters(const Geometry& g, const PackedFilters& layout, const void* filters, void* to,
                  const float* bias, float* bias_to, std::size_t element_bytes, Stream stream,
                  Members members);
// Extracts the gradient of the filters from the gradient of packed filters, [K][taps][inner], which
// is not transposed. If filters are shared, adds the gradients of the groups in their order.
void unpack_gradient(const Geometry& g, const PackedFilters& layout, const float* packed, float* to,
                     Stream stream, Members members);

}  // namespace convoy::kernels::conv
