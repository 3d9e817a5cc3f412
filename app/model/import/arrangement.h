// How a value of a file shows the output of a layer. Reshape and Transpose move no data at import:
// they only change the arrangement, until an operation needs the image itself. So a channel
// shuffle, a flattened image or channels in the last place are recognised however they are written.
#pragma once

#include <optional>

#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

// A factor of one of the layer's axes N, C, H, W (0 to 3). `stride` counts the axis' elements from
// one index of the factor to the next.
struct Factor {
  int axis = 0;
  std::int64_t stride = 1, size = 1;
  bool operator==(const Factor&) const = default;
};

class Arrangement {
 public:
  Arrangement() = default;
  // Shows the layer's output as it is: [N, C, H, W] or [N, C].
  explicit Arrangement(const Dims& layer);

  const Dims& layer() const { return layer_; }
  Dims dims() const;
  int rank() const { return static_cast<int>(axes_.size()); }
  // Both return nothing if the result is no arrangement: it would cut an axis at a place that is
  // not a factor, or `order` is no permutation.
  std::optional<Arrangement> reshaped(const Dims& dims) const;
  std::optional<Arrangement> transposed(const std::vector<std::int64_t>& order) const;

  bool is_plain() const;  // as the constructor made it
  bool is_flat() const;   // [N, C H W]
  // Returns g if only the channels are not in order, but shuffled in g groups; else 0.
  int shuffle_groups() const;
  // Returns the place of the layer's whole axis among the value's axes, or -1. H and W of extent 1
  // have none.
  int place_of(int layer_axis) const;
  // Whether `other` shows its layer in the same order; extents may differ.
  bool has_order_of(const Arrangement& other) const;

  // Returns the same arrangement of a layer with other channels. The axis of channels must be
  // whole.
  Arrangement with_channels(std::int64_t channels) const;

  // A range of the layer's channels and how a value shows it.
  struct ChannelRange;
  // Returns the part of a value with `count` indices from `begin` on at one place. Nothing if these
  // are not consecutive channels.
  std::optional<ChannelRange> channel_range(int place, std::int64_t begin, std::int64_t count) const;

  bool operator==(const Arrangement&) const = default;

 private:
  Dims layer_;                             // extents of the layer's output
  std::vector<std::vector<Factor>> axes_;  // without H and W of extent 1
};

struct Arrangement::ChannelRange {
  std::int64_t begin, count;
  Arrangement view;
};

}  // namespace convoy::app::onnx_import
