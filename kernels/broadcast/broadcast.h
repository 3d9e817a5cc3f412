// Products and sums of an image with a factor that is repeated over it.
//   multiply_forward   {x, factor} -> {y}                 y may be x
//   multiply_backward  {x, factor, dy} -> {dx, dfactor}   dx may be x or dy
//   broadcast_add_forward   {x, term} -> {y}              y may be x
//   broadcast_add_backward  {dy} -> {dterm}               the gradient of x is dy itself
// x, y, dy, dx [N, C, H, W] or [N, C] of one layout. factor and term are one of
//   [C]           f32; one value a channel: layer scale, a bias
//   [N, C, 1, 1]  of x's type; one value a channel and sample: squeeze-and-excitation gates
//   x's shape     of x's type; multiply only (kernels/add adds tensors of one shape)
// and their gradients have the same shape and type. Samples that are not valid need no care: their
// gradients dy are zero.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct BroadcastProblem {};

CONVOY_KERNEL(multiply_forward, BroadcastProblem);
CONVOY_KERNEL(multiply_backward, BroadcastProblem);
CONVOY_KERNEL(broadcast_add_forward, BroadcastProblem);
CONVOY_KERNEL(broadcast_add_backward, BroadcastProblem);

// How a factor is repeated over an image.
enum class Repeat : std::uint8_t { over_all, over_pixels, none };
// Throws std::invalid_argument for other shapes.
Repeat repeat_of(const char* operation, const Shape& factor, const Shape& x);
// Requires the layout and, for one value a channel, the type of the factor.
void require_factor(const char* operation, Repeat repeat, TensorDesc& factor, const TensorDesc& x);
// Throws std::invalid_argument for x's shape.
Repeat repeated_term(const char* operation, const Shape& term, const Shape& x);

}  // namespace convoy::kernels
