// Describes how a value of a file shows the output of a layer. Reshape and Transpose move no data
// at import. They only change the arrangement, until an operation needs the image itself. So a
// channel shuffle, a flattened image or channels in the last place are recognised in any notation.
#pragma once

#include <optional>

#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

// A factor of one of the layer's axes N, C, H, W (0 to 3). `stride` is the distance of neighbouring
// indices of the factor, in elements of the axis.
struct Factor {
  int axis = 0;
  std::int64_t stride = 1, size = 1;
  bool operator==(const Factor&) const = default;
};

class Arrangement {
 public:
  Arrangement() = default;
  // Makes the arrangement that shows the layer's output unchanged: [N, C, H, W] or [N, C].
  explicit Arrangement(const Dims& layer);

  const Dims& layer() const { return layer_; }
  Dims dims() const;
  int rank() const { return static_cast<int>(axes_.size()); }
  // Return the arrangement after Reshape or Transpose. Return nothing if there is none, because an
  // axis would be cut at a place that is not a factor, or because `order` is no permutation.
  std::optional<Arrangement> reshaped(const Dims& dims) const;
  std::optional<Arrangement> transposed(const std::vector<std::int64_t>& order) const;

  bool is_plain() const;  // whether it shows the layer's output unchanged
  bool is_flat() const;   // whether it is [N, C H W]
  // Returns g if the layer is shown unchanged except that its channels are shuffled in g groups;
  // else 0.
  int shuffle_groups() const;
  // Returns which axis of the value is the whole axis `layer_axis` of the layer, or -1 if none is.
  // H and W of extent 1 have no place.
  int place_of(int layer_axis) const;
  // Returns whether `other` shows its layer in the same order. The extents may differ.
  bool has_order_of(const Arrangement& other) const;

  // Returns the same arrangement for a layer with another number of channels. Requires that the
  // axis of channels is whole.
  Arrangement with_channels(std::int64_t channels) const;

  // A range of the layer's channels, and how a value shows it.
  struct ChannelRange;
  // Returns the part of a value that has `count` indices from `begin` on in axis `place`. Returns
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
