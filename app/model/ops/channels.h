// Layers that copy channels: Slice, and the channel shuffle of ShuffleNet (Zhang et al. 2018).
#pragma once

#include "app/model/layer.h"
#include "kernels/channels/channels.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(SliceForward, slice_forward, SliceProblem);
CONVOY_NODE(SliceBackward, slice_backward, SliceProblem);
CONVOY_REPEATABLE_NODE(ChannelShuffleForward, channel_shuffle, ShuffleProblem);

struct Slice {
  static constexpr std::string_view kKind = "slice";
  using Nodes = std::tuple<SliceForward, SliceBackward>;
  std::int64_t begin = 0, count = 1;  // the first channel and the number of channels

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes) const { return 0; }
  std::string attributes() const;
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;
};

struct ChannelShuffle {
  static constexpr std::string_view kKind = "channel_shuffle";
  using Nodes = std::tuple<ChannelShuffleForward>;
  int groups = 2;  // must divide the number of channels

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes) const { return 0; }
  std::string attributes() const;
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;
};

}  // namespace convoy::app
