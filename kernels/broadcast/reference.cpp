// Multiplies an image by a tensor, or adds a tensor to it, and computes the gradients. The tensor
// is repeated over samples and pixels, over pixels only, or not at all (Repeat). Works in plain
// loops.
#include <vector>

#include "kernels/broadcast/broadcast.h"
#include "kernels/device/host_kernel.h"

namespace convoy::kernels::reference {
namespace {

// Returns the index of the factor for element i of x.
std::int64_t index_of(Repeat repeat, const ImageExtents& e, std::int64_t i) {
  if (repeat == Repeat::none) return i;
  return repeat == Repeat::over_pixels ? i / e.pixels() : i / e.pixels() % e.c;
}

Kernel forward(const char* operation, bool add, KernelRequest& request) {
  require_counts(operation, request, 2, 1);
  require_row_major(operation, request);
  const TensorDesc &x = request.inputs[0], &factor = request.inputs[1];
  require_shape(operation, "y", request.outputs[0], x.shape);
  const Repeat repeat = (add ? repeated_term : repeat_of)(operation, factor.shape, x.shape);
  return host_kernel(
      [=, e = image_extents(x.shape)](const BoundOperands& b) {
        for (std::int64_t i = 0; i < e.n * e.c * e.pixels(); ++i) {
          const float value = b.in(1)[index_of(repeat, e, i)];
          b.out(0)[i] = add ? b.in(0)[i] + value : b.in(0)[i] * value;
        }
      },
      {{0, 0}});
}

}  // namespace

Kernel multiply_forward(const BroadcastProblem&, KernelRequest& request) {
  return forward("multiply_forward", false, request);
}
Kernel broadcast_add_forward(const BroadcastProblem&, KernelRequest& request) {
  return forward("broadcast_add_forward", true, request);
}

Kernel multiply_backward(const BroadcastProblem&, KernelRequest& request) {
  const char* operation = "multiply_backward";
  require_counts(operation, request, 3, 2);
  require_row_major(operation, request);
  const TensorDesc &x = request.inputs[0], &factor = request.inputs[1];
  require_shape(operation, "dy", request.inputs[2], x.shape);
  require_shape(operation, "dx", request.outputs[0], x.shape);
  require_shape(operation, "dfactor", request.outputs[1], factor.shape);
  const Repeat repeat = repeat_of(operation, factor.shape, x.shape);
  return host_kernel(
      [=, e = image_extents(x.shape), factors = factor.shape.elements()](const BoundOperands& b) {
        std::vector<double> sums(factors, 0.0);
        for (std::int64_t i = 0; i < e.n * e.c * e.pixels(); ++i) {
          const std::int64_t at = index_of(repeat, e, i);
          const float dy = b.in(2)[i];
          sums[at] += double(b.in(0)[i]) * dy;
          b.out(0)[i] = b.in(1)[at] * dy;
        }
        for (std::int64_t i = 0; i < factors; ++i) b.out(1)[i] = static_cast<float>(sums[i]);
      },
      {{0, 0}, {2, 0}});
}

Kernel broadcast_add_backward(const BroadcastProblem&, KernelRequest& request) {
  const char* operation = "broadcast_add_backward";
  require_counts(operation, request, 1, 1);
  require_row_major(operation, request);
  const Shape &dy = request.inputs[0].shape, &term = request.outputs[0].shape;
  const Repeat repeat = repeated_term(operation, term, dy);
  return host_kernel([=, e = image_extents(dy), terms = term.elements()](const BoundOperands& b) {
    std::vector<double> sums(terms, 0.0);
    for (std::int64_t i = 0; i < e.n * e.c * e.pixels(); ++i) sums[index_of(repeat, e, i)] += b.in(0)[i];
    for (std::int64_t i = 0; i < terms; ++i) b.out(0)[i] = static_cast<float>(sums[i]);
  });
}

}  // namespace convoy::kernels::reference
