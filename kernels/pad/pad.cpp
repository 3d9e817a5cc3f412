#include "kernels/pad/pad.h"

#include <fmt/format.h>

#include <stdexcept>

namespace convoy::kernels {

Shape pad_output_shape(const PadProblem& p, const Shape& x) {
  if (x.rank() != 4)
    throw std::invalid_argument(fmt::format("pad: x is {}, expected four extents", x.to_string()));
  const Shape y{x[0], x[1], p.top + x[2] + p.bottom, p.left + x[3] + p.right};
  if (y[2] < 1 || y[3] < 1)
    throw std::invalid_argument(fmt::format("pad: amounts {}, {}, {}, {} leave nothing of {}", p.top,
                                            p.bottom, p.left, p.right, x.to_string()));
  return y;
}

}  // namespace convoy::kernels
