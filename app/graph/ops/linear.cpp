#include "app/model/ops/linear.h"

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

void Linear::forward(Emitter& emitter) const {
  std::vector<TensorId> inputs{emitter.input(), emitter.parameter("weight")};
  if (bias) inputs.push_back(emitter.parameter("bias"));
  const Shape shape = emitter.shape(emitter.input());
  emitter.append(LinearForward{{bias, emitter.options().tf32}}, inputs, {emitter.output()},
                 flops({&shape, 1}));
}

void Linear::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  const Shape shape = emitter.shape(emitter.input());
  const kernels::LinearProblem problem{bias, emitter.options().tf32};
  if (emitter.trains({"weight"}) || (bias && emitter.trains({"bias"}))) {
    std::vector<TensorId> gradients{emitter.parameter_gradient("weight")};
    if (bias) gradients.push_back(emitter.parameter_gradient("bias"));
    emitter.append(LinearBackwardWeights{problem}, {emitter.input(), dy}, gradients, flops({&shape, 1}));
  }
  if (!emitter.wants_gradient(0)) return;
  emitter.append(LinearBackwardData{problem}, {dy, emitter.parameter("weight")},
                 {emitter.new_input_gradient(0)}, flops({&shape, 1}));
}

void Linear::write(LayerWriter& onnx) const {
  std::string rows = onnx.input();
  if (onnx.shape().rank() == 4)
    onnx.graph().node("Flatten", {onnx.input()}, rows = onnx.part("rows")).set("axis", std::int64_t{1});
  std::vector<std::string> operands{rows, onnx.parameter("weight")};
  if (bias) operands.push_back(onnx.parameter("bias"));
  onnx.node("Gemm", operands).set("transB", std::int64_t{1});
}

}  // namespace convoy::app
