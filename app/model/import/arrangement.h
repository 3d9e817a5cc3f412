// Describes how a value in an ONNX file is derived from the output of a layer: by its shape and the
// order of its axes. During import, Reshape and Transpose add no layer. They only change this
// arrangement, until an operation needs the image itself. So the importer recognises a channel
// shuffle, a flattened image, or channels on the last axis, whichever nodes the file uses for them.
#pragma once

#include <optional>

#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

// A factor of one of the layer's axes N, C, H, W (0 to 3). For example, C = 6 can be split into a
// factor of size 2 and stride 3, and a factor of size 3 and stride 1. A step of 1 along the factor
// is a step of `stride` along the axis.
struct Factor {
  int axis = 0;
  std::int64_t stride = 1, size = 1;
  bool operator==(const Factor&) const = default;
};

class Arrangement {
 public:
  Arrangement() = default;
  // Makes the arrangement of a value that is the layer's output unchanged: [N, C, H, W] or [N, C].
  explicit Arrangement(const Dims& layer);

  const Dims& layer() const { return layer_; }
  Dims dims() const;
  int rank() const { return static_cast<int>(axes_.size()); }
  // Return the arrangement after Reshape or Transpose. reshaped() splits axes and joins the parts
  // in order, so that the new axes have the extents `dims`. It returns nothing if that is
  // impossible: [6, 4] can become [2, 12], but not [8, 3]. transposed() returns nothing if `order`
  // is no permutation.
  std::optional<Arrangement> reshaped(const Dims& dims) const;
  std::optional<Arrangement> transposed(const std::vector<std::int64_t>& order) const;

  bool is_plain() const;  // whether the value is the layer's output unchanged
  bool is_flat() const;   // whether the value is [N, C * H * W]
  // Returns g if the value is the layer's output with a channel shuffle of g groups, else 0.
  int shuffle_groups() const;
  // Returns the axis of the value that is the whole axis `layer_axis` (0 to 3) of the layer.
  // Returns -1 if there is no such axis, as for H and W of extent 1.
  int place_of(int layer_axis) const;
  // Returns whether both values have the same number of axes, with N and C on the same axes.
  bool has_order_of(const Arrangement& other) const;

  // Returns the same arrangement for a layer with another number of channels. The value must have
  // an axis that is the layer's axis of channels (place_of(1) >= 0).
  Arrangement with_channels(std::int64_t channels) const;

  // A range of the layer's channels, and the arrangement of a value with these channels alone.
  struct ChannelRange;
  // Returns the channels that belong to the indices [begin, begin + count) of axis `place`, or
  // nothing if these are not consecutive channels.
  std::optional<ChannelRange> channel_range(int place, std::int64_t begin, std::int64_t count) const;

  bool operator==(const Arrangement&) const = default;

 private:
  Dims layer_;  // the extents of the layer's output
  // The factors of each axis of the value. H and W are left out if their extent is 1.
  std::vector<std::vector<Factor>> axes_;
};

struct Arrangement::ChannelRange {
  std::int64_t begin, count;
  Arrangement view;
};

}  // namespace convoy::app::onnx_import
