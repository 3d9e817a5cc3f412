#include "app/model/ops/local_response_norm.h"

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

void LocalResponseNorm::forward(Emitter& emitter) const {
  const TensorId scale = emitter.new_tensor("scale", emitter.shape(emitter.output()));
  emitter.save("scale", scale);
  emitter.append(LocalResponseNormForward{{size, alpha, beta, k}}, {emitter.input()},
                 {emitter.output(), scale});
}

void LocalResponseNorm::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const TensorId dy = emitter.output_gradient();
  emitter.append(LocalResponseNormBackward{{size, alpha, beta, k}},
                 {emitter.input(), emitter.output(), emitter.saved("scale"), dy},
                 {emitter.new_input_gradient(0)});
}

void LocalResponseNorm::write(LayerWriter& onnx) const {
  onnx.node("LRN", {onnx.input()})
      .set("size", std::int64_t{size})
      .set("alpha", alpha)
      .set("beta", beta)
      .set("bias", k);
}

}  // namespace convoy::app
