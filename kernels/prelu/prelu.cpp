#include "kernels/prelu/prelu.h"

#include "kernels/device/host_kernel.h"

namespace convoy::kernels {

void require_slope(const char* operation, TensorDesc& slope, const Shape& x) {
  require_layout(operation, slope, Layout::row_major);
  require_dtype(operation, "the slope", slope, DType::f32);
  if (slope.shape != Shape{1}) require_shape(operation, "the slope", slope, {image_extents(x).c});
}

}  // namespace convoy::kernels
