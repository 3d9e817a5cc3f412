#include "app/model/ops/channels.h"

#include <fmt/format.h>

namespace convoy::app {
namespace {

void expect_channels(const Shape& shape) {
  if (shape.rank() != 2) expect_image(shape);
}

}  // namespace

Shape Slice::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  Shape output = inputs[0];
  expect_channels(output);
  if (begin < 0 || count < 1 || begin + count > output[1])
    throw ShapeError(fmt::format("takes channels {} to {} of {}", begin, begin + count - 1, output[1]));
  output[1] = count;
  return output;
}

std::string Slice::attributes() const { return fmt::format("channels {} to {}", begin, begin + count - 1); }

Shape ChannelShuffle::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  expect_channels(inputs[0]);
  if (groups < 1 || inputs[0][1] % groups != 0)
    throw ShapeError(fmt::format("{} groups of {} channels, expected a divisor", groups, inputs[0][1]));
  return inputs[0];
}

std::string ChannelShuffle::attributes() const { return fmt::format("{} groups", groups); }

}  // namespace convoy::app
