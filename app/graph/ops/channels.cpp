#include "app/model/ops/channels.h"

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

using onnx_export::Dims;

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

void Slice::write(LayerWriter& onnx) const {
  const std::string first = onnx.graph().constant(onnx.part("begin"), {begin});
  const std::string end = onnx.graph().constant(onnx.part("end"), {begin + count});
  onnx.node("Slice", {onnx.input(), first, end, onnx.graph().constant(onnx.part("axis"), {1})});
}

void ChannelShuffle::write(LayerWriter& onnx) const {
  const Shape& x = onnx.shape();
  const std::int64_t pixels = x.rank() == 4 ? x[2] * x[3] : 1;
  Dims whole = onnx_export::dims_of(x);
  whole[0] = 0;  // in ONNX's Reshape, 0 keeps the extent of the batch
  const std::string grouped = onnx.graph().constant(onnx.part("groups"), {0, groups, x[1] / groups, pixels});
  onnx.graph().node("Reshape", {onnx.input(), grouped}, onnx.part("grouped"));
  onnx.graph().node("Transpose", {onnx.part("grouped")}, onnx.part("turned")).set("perm", Dims{0, 2, 1, 3});
  onnx.node("Reshape", {onnx.part("turned"), onnx.graph().constant(onnx.part("shape"), whole)});
}

}  // namespace convoy::app
