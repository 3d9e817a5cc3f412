// Packs the groups of a convolution into tiles. Neighbouring groups form a pack that fills whole
// tiles. A tile has the filters (backward_data: the channels) of one pack and reads only that
// pack's channels, in whole blocks. The zeros outside packs cost nothing. Within a pack, elements
// outside a filter's group are multiplied by zeros, so a value that is not finite may reach other
// groups of the pack. CUDA builds only.
#pragma once

#include <algorithm>
#include <numeric>

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

// The packs of a convolution. Without groups there is one.
struct GroupPacking {
  int count;  // packs, of which the last may have empty groups
  int c, k;   // channels of x, and filters, in a pack
};

// Packs groups, each `width` filters (backward_data: channels) wide, for tiles that have `extent`
// of them.
inline GroupPacking pack_groups(const Geometry& g, int width, int extent) {
  const int merged = std::min(extent / std::gcd(width, extent), g.groups);
  return {(g.groups + merged - 1) / merged, merged * (g.c / g.groups), merged * (g.k / g.groups)};
}

// A copy of the filters, [packs][rows][taps][inner], with zeros between groups and in padding. A
// row is a filter and inner runs over its pack's channels, or, if transposed, the other way round.
struct PackedFilters {
  GroupPacking packing;
  int rows, inner;
  bool transposed;
  bool shared = false;  // there is one group's filters, for all groups

  std::int64_t elements(const Geometry& g) const {
    return std::int64_t{packing.count} * rows * g.taps() * inner;
  }
  // Returns whether the copy equals the filters.
  bool is_plain(const Geometry& g) const {
    return !transposed && !shared && packing.count == g.groups && rows == g.k / g.groups &&
           inner == g.c / g.groups;
  }
};

// `bias` may be null; else it is copied to `bias_to` [K], once a group if filters are shared.
void pack_filters(const Geometry& g, const PackedFilters& layout, const void* filters, void* to,
                  const float* bias, float* bias_to, std::size_t element_bytes, Stream stream,
                  Members members);
// Extracts the filters' gradient from that of packed filters, [K][taps][inner], which is not
// transposed. Adds the groups' gradients, in their order, if filters are shared.
void unpack_gradient(const Geometry& g, const PackedFilters& layout, const float* packed, float* to,
                     Stream stream, Members members);

}  // namespace convoy::kernels::conv
