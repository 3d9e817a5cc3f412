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

std::string extents(const std::array<int, 2>& of) {
  return of[0] == of[1] ? fmt::format("{}", of[0]) : fmt::format("{}x{}", of[0], of[1]);
}

bool is_gate(const Shape& shape, const Shape& of) {
  return shape.rank() == 4 && of.rank() == 4 && shape == Shape{of[0], of[1], 1, 1};
}

}  // namespace convoy::app
