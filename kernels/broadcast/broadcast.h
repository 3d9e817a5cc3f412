// Products and sums of an image and a smaller tensor, which is repeated over the image.
//   multiply_forward   {x, factor} -> {y}                 y may be x
//   multiply_backward  {x, factor, dy} -> {dx, dfactor}   dx may be x or dy
//   broadcast_add_forward   {x, term} -> {y}              y may be x
//   broadcast_add_backward  {dy} -> {dterm}               the gradient of x is dy itself
// x, y, dy and dx are [N, C, H, W] or [N, C], of one layout. factor and term have one of the shapes
//   [C]           f32; one value per channel: layer scale, a bias
//   [N, C, 1, 1]  of x's type; one value per channel and sample: squeeze-and-excitation gates
//   x's shape     of x's type; multiply only (kernels/add adds tensors of one shape)
// and their gradients have the same shape and type. Samples that are not valid need no special
// treatment, because their gradients dy are zero.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct BroadcastProblem {};

CONVOY_KERNEL(multiply_forward, BroadcastProblem);
CONVOY_KERNEL(multiply_backward, BroadcastProblem);
CONVOY_KERNEL(broadcast_add_forward, BroadcastProblem);
CONVOY_KERNEL(broadcast_add_backward, BroadcastProblem);

// Says how a factor is repeated over an image: over samples and pixels, over pixels, or not at all.
enum class Repeat : std::uint8_t { over_all, over_pixels, none };
// Returns how a factor of this shape is repeated over x. Throws std::invalid_argument unless it is
// one of the three shapes at the head of this file.
Repeat repeat_of(const char* operation, const Shape& factor, const Shape& x);
// Requires a factor with one value per channel to be row_major f32, and any other factor to have
// the layout and the type of x. Sets the factor's layout if it is open.
void require_factor(const char* operation, Repeat repeat, TensorDesc& factor, const TensorDesc& x);
// Returns how a term of broadcast_add is repeated over x. Throws std::invalid_argument like
// repeat_of(), and also if the term has x's own shape.
Repeat repeated_term(const char* operation, const Shape& term, const Shape& x);

}  // namespace convoy::kernels
