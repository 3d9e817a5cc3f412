#include "kernels/layer_norm/layer_norm.h"

#include "kernels/device/host_kernel.h"

namespace convoy::kernels {
namespace {

void require_vector(const char* operation, TensorDesc& desc, const Shape& shape) {
  require_layout(operation, desc, Layout::row_major);
  require_dtype(operation, "gamma, beta or moments", desc, DType::f32);
  require_shape(operation, "gamma, beta or moments", desc, shape);
}

}  // namespace

Shape layer_norm_moments(const Shape& x) {
  const ImageExtents e = image_extents(x);
  return {2 * e.n * e.pixels()};
}

void require_layer_norm_forward(KernelRequest& request) {
  const char* operation = "layer_norm_forward";
  require_counts(operation, request, 3, 2);
  const Shape& x = request.inputs[0].shape;
  require_shape(operation, "y", request.outputs[0], x);
  for (const int i : {1, 2}) require_vector(operation, request.inputs[i], {image_extents(x).c});
  require_vector(operation, request.outputs[1], layer_norm_moments(x));
}

void require_layer_norm_backward(KernelRequest& request) {
  const char* operation = "layer_norm_backward";
  require_counts(operation, request, 4, 3);
  const Shape &x = request.inputs[0].shape, channels{image_extents(x).c};
  require_shape(operation, "dy", request.inputs[2], x);
  require_shape(operation, "dx", request.outputs[0], x);
  require_vector(operation, request.inputs[1], channels);
  require_vector(operation, request.inputs[3], layer_norm_moments(x));
  for (const int i : {1, 2}) require_vector(operation, request.outputs[i], channels);
}

}  // namespace convoy::kernels
