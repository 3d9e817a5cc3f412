// Computes the output shape of a pool.
#include "kernels/pool/pool.h"

#include <fmt/format.h>

#include <stdexcept>

namespace convoy::kernels {

Shape pool_output_shape(const PoolProblem& problem, const Shape& x) {
  if (x.rank() != 4)
    throw std::invalid_argument(fmt::format("pool: x is {}, expected four extents", x.to_string()));
  Shape y{x[0], x[1], 0, 0};
  for (int axis = 0; axis < 2; ++axis) {
    const std::int64_t extent = x[axis + 2], kernel = problem.kernel[axis], stride = problem.stride[axis];
    const std::int64_t padding = problem.padding[axis], room = extent + 2 * padding - kernel;
    if (room < 0 || stride < 1 || padding < 0 || 2 * padding > kernel)
      throw std::invalid_argument(
          fmt::format("pool: kernel {}, stride {} and padding {} do not fit an extent of {}", kernel, stride,
                      padding, extent));
    std::int64_t count = (problem.ceil_mode ? room + stride - 1 : room) / stride + 1;
    if ((count - 1) * stride >= extent + padding) --count;
    y[axis + 2] = count;
  }
  return y;
}

}  // namespace convoy::kernels
