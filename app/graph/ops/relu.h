// Appends the backward of a ReLU that was fused into another layer.
#pragma once

#include "app/graph/emitter.h"

namespace convoy::app {

// Appends the backward of the ReLU that is fused into the emitter's layer. Returns the gradient of
// the ReLU's input.
TensorId gradient_before_relu(Emitter& emitter);

}  // namespace convoy::app
