#include "app/model/ops/layer_norm.h"

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

using onnx_export::Dims;

void LayerNorm::forward(Emitter& emitter) const {
  const TensorId moments =
      emitter.new_full_precision("moments", kernels::layer_norm_moments(emitter.shape(emitter.input())));
  emitter.save("moments", moments);
  emitter.append(LayerNormForward{{epsilon}},
                 {emitter.input(), emitter.parameter("weight"), emitter.parameter("bias")},
                 {emitter.output(), moments});
}

void LayerNorm::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  emitter.append(LayerNormBackward{{epsilon}},
                 {emitter.input(), emitter.parameter("weight"), dy, emitter.saved("moments")},
                 {emitter.new_input_gradient(0), emitter.parameter_gradient("weight"),
                  emitter.parameter_gradient("bias")});
}

// Moves the channels to the last axis and back, because ONNX's LayerNormalization works only on the
// last axes.
void LayerNorm::write(LayerWriter& onnx) const {
  const bool image = onnx.shape().rank() == 4;
  const std::string rows = image ? onnx.part("channels_last") : onnx.input(),
                    result = image ? onnx.part("normal") : onnx.output();
  if (image) onnx.graph().node("Transpose", {onnx.input()}, rows).set("perm", Dims{0, 2, 3, 1});
  onnx.graph()
      .node("LayerNormalization", {rows, onnx.parameter("weight"), onnx.parameter("bias")}, result)
      .set("axis", std::int64_t{-1})
      .set("epsilon", epsilon);
  if (image) onnx.node("Transpose", {result}).set("perm", Dims{0, 3, 1, 2});
}

}  // namespace convoy::app
