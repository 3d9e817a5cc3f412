// Sums of x and of x^2 over a channel, from which batch norm computes the variance. Sums in float
// lose the variance if the mean is far above the standard deviation: at a ratio of 100, x^2 is
// 10,000 times the variance, so its rounding errors count 10,000 times. A thread that sums f32
// therefore sums x - shift, where shift is one of its first values, over some ten to hundred
// values. From these sums it then computes the sums of x and of x^2, in double. Sums of bf16 stay
// in float, because rounding x to bf16 changes the variance more than rounding the sums does.
#pragma once

#include <type_traits>

namespace convoy::kernels::cuda {

// Whether the sums of elements of `element_bytes` bytes are shifted, and the type of the sums that
// threads and blocks hand on.
template <int element_bytes>
inline constexpr bool kShiftsSums = element_bytes == 4;
template <int element_bytes>
using MomentSum = std::conditional_t<kShiftsSums<element_bytes>, double, float>;

// Changes the sums of `count` values x - shift and of their squares to the sums of x and of x^2.
__device__ __forceinline__ void remove_shift(double& sum, double& squares, double count, double shift) {
  squares += shift * (2 * sum + count * shift);
  sum += count * shift;
}

}  // namespace convoy::kernels::cuda
