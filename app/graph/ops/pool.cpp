#include "app/model/ops/pool.h"

#include "app/graph/ops/relu.h"

namespace convoy::app {

using kernels::PoolKind;

void Pool::forward(Emitter& emitter) const {
  std::vector<TensorId> outputs{emitter.output()};
  if (kind == PoolKind::max) {
    outputs.push_back(emitter.new_tensor("argmax", emitter.shape(emitter.output()), kernels::DType::i32));
    emitter.save("argmax", outputs[1]);
  }
  emitter.append(PoolForward{problem(emitter.shape(emitter.input()))}, {emitter.input()}, outputs);
}

void Pool::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  std::vector<TensorId> inputs{relu ? gradient_before_relu(emitter) : emitter.output_gradient()};
  if (kind == PoolKind::max) inputs.insert(inputs.begin(), emitter.saved("argmax"));
  const PoolBackward pool{problem(emitter.shape(emitter.input()))};
  emitter.append(pool, inputs, {emitter.new_input_gradient(0)});
}

}  // namespace convoy::app
