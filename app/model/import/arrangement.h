// Describes in which shape and order of axes a value of a file presents the output of a layer. At
// import Reshape and Transpose add no layer and only change this arrangement, until an operation
// needs the image itself. So a channel shuffle, a flattened image, or channels on the last axis are
// recognised whichever nodes a file uses for them.
#pragma once

#include <optional>

#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

// A part of one of the layer's axes N, C, H, W (0 to 3). For example C = 6 can be split into a
// factor of size 2 and stride 3, and one of size 3 and stride 1. `stride` is how far a step of one
// along the factor goes along the axis.
struct Factor {
  int axis = 0;
  std::int64_t stride = 1, size = 1;
  bool operator==(const Factor&) const = default;
};

class Arrangement {
 public:
  Arrangement() = default;
  // Makes the arrangement that presents the layer's output unchanged: [N, C, H, W] or [N, C].
  explicit Arrangement(const Dims& layer);

  const Dims& layer() const { return layer_; }
  Dims dims() const;
  int rank() const { return static_cast<int>(axes_.size()); }
  // Return the arrangement after Reshape or Transpose. Return nothing if an axis would have to be
  // split where it cannot be split into factors, or if `order` is no permutation.
  std::optional<Arrangement> reshaped(const Dims& dims) const;
  std::optional<Arrangement> transposed(const std::vector<std::int64_t>& order) const;

  bool is_plain() const;  // whether it presents the layer's output unchanged
  bool is_flat() const;   // whether it is [N, C H W]
  // Returns g if the only change is a channel shuffle with g groups, else 0.
  int shuffle_groups() const;
  // Returns which axis of the value is the whole axis `layer_axis` (0 to 3) of the layer. Returns
  // -1 if none is, as for H and W of extent 1.
  int place_of(int layer_axis) const;
  // Returns whether `other` has the same order of axes and factors. The extents may differ.
  bool has_order_of(const Arrangement& other) const;

  // Returns the same arrangement for a layer with another number of channels. Requires that the
  // axis of channels is whole.
  Arrangement with_channels(std::int64_t channels) const;

  // A range of the layer's channels, and its arrangement in the value.
  struct ChannelRange;
  // Returns the channels that are the indices [begin, begin + count) of axis `place`. Returns
  // nothing if these are not consecutive channels.
  std::optional<ChannelRange> channel_range(int place, std::int64_t begin, std::int64_t count) const;

  bool operator==(const Arrangement&) const = default;

 private:
  Dims layer_;  // the extents of the layer's output
  // For each axis of the value: its factors. H and W of extent 1 are left out.
  std::vector<std::vector<Factor>> axes_;
};

struct Arrangement::ChannelRange {
  std::int64_t begin, count;
  Arrangement view;
};

}  // namespace convoy::app::onnx_import
