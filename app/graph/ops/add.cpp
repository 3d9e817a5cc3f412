#include "app/model/ops/add.h"

#include "app/graph/emitter.h"

namespace convoy::app {

void Add::forward(Emitter& emitter) const {
  emitter.append(AddForward{}, emitter.inputs(), {emitter.output()});
}

void Add::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  for (int i = 0; i < emitter.input_count(); ++i)
    if (emitter.wants_gradient(i)) emitter.contribute(i, dy);
}

}  // namespace convoy::app
