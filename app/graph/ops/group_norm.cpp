#include "app/model/ops/group_norm.h"

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

using onnx_export::Dims;

void GroupNorm::forward(Emitter& emitter) const {
  const TensorId moments =
      emitter.new_full_precision("moments", Shape{2 * emitter.shape(emitter.input())[0] * groups});
  emitter.save("moments", moments);
  emitter.append(GroupNormForward{{groups, epsilon}},
                 {emitter.input(), emitter.parameter("weight"), emitter.parameter("bias")},
                 {emitter.output(), moments});
}

void GroupNorm::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  emitter.append(GroupNormBackward{{groups, epsilon}},
                 {emitter.input(), emitter.parameter("weight"), dy, emitter.saved("moments")},
                 {emitter.new_input_gradient(0), emitter.parameter_gradient("weight"),
                  emitter.parameter_gradient("bias")});
}

// Writes a group norm as an instance norm in which each group is one channel. ONNX has a group norm
// only since opset 18, and the file is written in opset 17.
void GroupNorm::write(LayerWriter& onnx) const {
  const std::vector<float> ones(static_cast<std::size_t>(groups), 1.0f), zeros(ones.size(), 0.0f);
  Dims whole = onnx_export::dims_of(onnx.shape());
  whole[0] = 0;  // in ONNX's Reshape, 0 keeps the extent of the batch
  onnx.graph().node("Reshape", {onnx.input(), onnx.graph().constant(onnx.part("groups"), {0, groups, -1})},
                    onnx.part("grouped"));
  onnx.graph()
      .node("InstanceNormalization",
            {onnx.part("grouped"), onnx.graph().constant(onnx.part("ones"), {groups}, ones),
             onnx.graph().constant(onnx.part("zeros"), {groups}, zeros)},
            onnx.part("normal"))
      .set("epsilon", epsilon);
  onnx.graph().node("Reshape", {onnx.part("normal"), onnx.graph().constant(onnx.part("shape"), whole)},
                    onnx.part("image"));
  onnx.graph().node("Mul",
                    {onnx.part("image"), onnx.parameter("weight", onnx.over_channels(onnx.shape()[1]))},
                    onnx.part("scaled"));
  onnx.node("Add", {onnx.part("scaled"), onnx.parameter("bias", onnx.over_channels(onnx.shape()[1]))});
}

}  // namespace convoy::app
