// The backward of a ReLU that was fused into another layer.
#pragma once

#include "app/graph/emitter.h"

namespace convoy::app {

// Appends the backward of the layer's fused ReLU. Returns the gradient before the ReLU, that is, of
// its input.
TensorId gradient_before_relu(Emitter& emitter);

}  // namespace convoy::app
