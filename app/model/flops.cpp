#include "app/model/flops.h"

#include <variant>

namespace convoy::app {

double forward_flops(const Network& network) {
  double flops = 0;
  for (const Layer& layer : network.layers())
    flops += std::visit([&](const auto& op) { return op.flops(network.input_shapes(layer)); }, layer.op);
  return flops;
}

}  // namespace convoy::app
