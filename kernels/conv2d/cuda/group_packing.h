// Packs the groups of a convolution for kernels that know no groups. A pack is several neighbouring
// groups, computed as one dense convolution: each filter gets zero weights for the channels of the
// other groups in its pack. NaN or infinity times zero is NaN, so an element that is not finite may
// affect other groups of its pack. CUDA builds only.
#pragma once

#include <algorithm>
#include <numeric>

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

// The packs (sets of groups) of a convolution. Without groups there is one pack.
struct GroupPacking {
  int count;  // how many packs there are; the last one may have empty groups
  int c, k;   // a pack's number of channels of x, and of filters
};

// Merges groups into packs. A group has `width` filters (in backward_data: channels), and a tile
// has room for `extent` of them. A pack has the fewest groups that fill whole tiles, or all groups
// if there are fewer. The kernel reads `channels` channels of each group from an image. Unless a
// pack has all groups, the number of channels that are read for it is a multiple of `aligned`,
// because a TMA box must begin at a multiple of 16 bytes.
inline GroupPacking pack_groups(const Geometry& g, int width, int extent, int channels, int aligned) {
  const int whole = extent / std::gcd(width, extent);
  const int merged = std::min(whole * (aligned / std::gcd(whole * channels, aligned)), g.groups);
  return {(g.groups + merged - 1) / merged, merged * (g.c / g.groups), merged * (g.k / g.groups)};
}

// The layout of a copy of the filters, [packs][rows][taps][inner]. A row is a filter, and `inner`
// are the channels of its pack. If transposed, a row is a channel, and `inner` are filters.
// Elements that correspond to no weight are zero.
struct PackedFilters {
  GroupPacking packing;
  int rows, inner;
  bool transposed;
  bool shared = false;  // the groups share one set of filters

  std::int64_t elements(const Geometry& g) const {
    return std::int64_t{packing.count} * rows * g.taps() * inner;
  }
  // Returns whether the copy would be identical to the filters, so that no copy is needed.
  bool is_plain(const Geometry& g) const {
    return !transposed && !shared && packing.count == g.groups && rows == g.k / g.groups &&
           inner == g.c / g.groups;
  }
};

// Copies the filters into this layout. Unless `bias_to` is null, copies the bias to it, [K]. If
// groups share filters, both are repeated for each group.
void pack_filters(const Geometry& g, const PackedFilters& layout, const void* filters, void* to,
                  const float* bias, float* bias_to, std::size_t element_bytes, Stream stream,
                  MemberLayout members);
// Copies the gradient of the filters from `packed`, [K][taps][inner], to `to`. If groups share
// filters, adds up the gradients of the groups.
void unpack_gradient(const Geometry& g, const PackedFilters& layout, const float* packed, float* to,
                     Stream stream, MemberLayout members);

}  // namespace convoy::kernels::conv
