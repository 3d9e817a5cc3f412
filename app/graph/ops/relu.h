// The backward of a ReLU that is fused into another layer.
#pragma once

#include "app/graph/emitter.h"

namespace convoy::app {

// Appends the backward of the layer's fused ReLU. Returns the gradient of the ReLU's input.
TensorId gradient_before_relu(Emitter& emitter);

}  // namespace convoy::app
