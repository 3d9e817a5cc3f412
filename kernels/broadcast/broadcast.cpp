#include "kernels/broadcast/broadcast.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernels/device/host_kernel.h"

namespace convoy::kernels {

Repeat repeat_of(const char* operation, const Shape& factor, const Shape& x) {
  const ImageExtents e = image_extents(x);
  if (factor == x) return Repeat::none;
  if (factor == Shape{e.c}) return Repeat::over_all;
  if (x.rank() == 4 && factor == Shape{e.n, e.c, 1, 1}) return Repeat::over_pixels;
  throw std::invalid_argument(fmt::format("{}: a factor {} for {}, expected {}, {}x{}x1x1 or the same shape",
                                          operation, factor.to_string(), x.to_string(), e.c, e.n, e.c));
}

void require_factor(const char* operation, Repeat repeat, TensorDesc& factor, const TensorDesc& x) {
  if (repeat == Repeat::over_all) {
    require_layout(operation, factor, Layout::row_major);
    require_dtype(operation, "the factor", factor, DType::f32);
  } else {
    match_layout(operation, factor, x);
    require_dtype(operation, "the factor", factor, x.dtype);
  }
}

Repeat repeated_term(const char* operation, const Shape& term, const Shape& x) {
  const Repeat repeat = repeat_of(operation, term, x);
  if (repeat == Repeat::none)
    throw std::invalid_argument(
        fmt::format("{}: a term of the same shape {}, expected one to repeat", operation, x.to_string()));
  return repeat;
}

}  // namespace convoy::kernels
