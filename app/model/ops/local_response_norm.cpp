#include "app/model/ops/local_response_norm.h"

#include <fmt/format.h>

namespace convoy::app {

Shape LocalResponseNorm::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  expect_image(inputs[0]);
  if (size < 1 || size % 2 == 0)
    throw ShapeError(fmt::format("size {}, expected an odd number of channels", size));
  return inputs[0];
}

std::string LocalResponseNorm::attributes() const {
  return fmt::format("size {}, alpha {}, beta {}, k {}", size, alpha, beta, k);
}

}  // namespace convoy::app
