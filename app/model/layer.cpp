#include "app/model/layer.h"

#include <fmt/format.h>

namespace convoy::app {

void expect_inputs(Shapes inputs, std::size_t count) {
  if (inputs.size() != count)
    throw ShapeError(fmt::format("reads {} tensors, expected {}", inputs.size(), count));
}

void expect_image(const Shape& shape) {
  if (shape.rank() != 4)
    throw ShapeError(
        fmt::format("reads a tensor of shape {}, expected images [N, C, H, W]", shape.to_string()));
}

}  // namespace convoy::app
