#include "app/model/ops/channels.h"

#include "app/graph/emitter.h"

namespace convoy::app {

void Slice::forward(Emitter& emitter) const {
  emitter.append(SliceForward{{begin}}, {emitter.input()}, {emitter.output()});
}

void Slice::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const TensorId dy = emitter.output_gradient();
  emitter.append(SliceBackward{{begin}}, {dy}, {emitter.new_input_gradient(0)});
}

void ChannelShuffle::forward(Emitter& emitter) const {
  emitter.append(ChannelShuffleForward{{groups}}, {emitter.input()}, {emitter.output()});
}

void ChannelShuffle::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const TensorId dy = emitter.output_gradient();
  const int inverse = static_cast<int>(emitter.shape(dy)[1]) / groups;
  emitter.append(ChannelShuffleForward{{inverse}}, {dy}, {emitter.new_input_gradient(0)});
}

}  // namespace convoy::app
