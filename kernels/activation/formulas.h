// The formulas of activations in single precision, for device code and for host loops that the
// compiler vectorises. A NaN stays a NaN in all of them.
#pragma once

#include <bit>
#include <cmath>
#include <type_traits>

#include "kernels/activation/activation.h"
#include "kernels/device/philox.h"

namespace convoy::kernels::activation {

// These functions must be inlined: a call inside a loop would keep the compiler from vectorising
// it.
#ifdef __CUDACC__
#define CONVOY_FORMULA __host__ __device__ __forceinline__
#else
#define CONVOY_FORMULA [[gnu::always_inline]] inline
#endif

// Returns e^x with an error of at most 2 units in the last place. The host does not call the C
// library, because that call would not be vectorised. It limits x to [-87, 88] and takes the
// polynomial of Cephes (Moshier).
CONVOY_FORMULA float exp_of(float x) {
#ifdef __CUDA_ARCH__
  return expf(x);
#else
  x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
  // e^x = 2^n e^r, where n is x / ln 2, rounded. Adding 1.5 * 2^23 leaves n in the low bits of
  // `shifted`.
  const float shifted = x * 1.44269504f + 12582912.0f;
  const float power = shifted - 12582912.0f;
  const float r = (x - power * 0.693359375f) + power * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 127u) << 23);
#endif
}

CONVOY_FORMULA float sigmoid_of(float x) {
#ifdef __CUDA_ARCH__
  return __fdividef(1.0f, 1.0f + expf(-x));
#else
  return 1.0f / (1.0f + exp_of(-x));
#endif
}

// Returns the distribution function of the normal distribution. On the host the error is below 1e-7
// (Abramowitz, Stegun, 7.1.26).
CONVOY_FORMULA float normal_cdf(float x) {
#ifdef __CUDA_ARCH__
  return 0.5f + 0.5f * erff(x * 0.70710678f);
#else
  const float z = std::fabs(x) * 0.70710678f;
  const float t = 1.0f / (1.0f + 0.3275911f * z);
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const float tail = 0.5f * p * t * exp_of(-z * z);
  return x < 0 ? tail : 1.0f - tail;
#endif
}

// Returns 2 sqrt(2/pi) (x + 0.044715 x^3). gelu_tanh is x times the sigmoid of this.
CONVOY_FORMULA float gelu_argument(float x) { return x * (1.59576912f + 0.07135482f * x * x); }

CONVOY_FORMULA float clipped(float x, float min, float max) { return x < min ? min : x > max ? max : x; }

template <ActivationKind kind>
CONVOY_FORMULA float value_of(const ActivationProblem& p, float x) {
  using K = ActivationKind;
  if constexpr (kind == K::clip) return clipped(x, p.min, p.max);
  if constexpr (kind == K::leaky_relu) return x > 0 ? x : p.slope * x;
  if constexpr (kind == K::sigmoid) return sigmoid_of(x);
  if constexpr (kind == K::hard_sigmoid) return clipped(p.slope * x + p.offset, 0.0f, 1.0f);
  if constexpr (kind == K::hard_swish) return x * clipped(x * (1.0f / 6.0f) + 0.5f, 0.0f, 1.0f);
  if constexpr (kind == K::silu) return x * sigmoid_of(x);
  if constexpr (kind == K::gelu) return x * normal_cdf(x);
  if constexpr (kind == K::gelu_tanh) return x * sigmoid_of(gelu_argument(x));
  if constexpr (kind == K::affine) return p.slope * x + p.offset;
}

// Returns the derivative at x. `from` is y if activation_backward_reads_y(), else x.
template <ActivationKind kind>
CONVOY_FORMULA float derivative_of(const ActivationProblem& p, float from) {
  using K = ActivationKind;
  const float x = from;
  if constexpr (kind == K::clip) return from > p.min && from < p.max ? 1.0f : 0.0f;
  if constexpr (kind == K::leaky_relu) return from > 0 ? 1.0f : p.slope;
  if constexpr (kind == K::sigmoid) {
    const float s = sigmoid_of(x);
    return s * (1.0f - s);
  }
  if constexpr (kind == K::hard_sigmoid) {
    const float linear = p.slope * x + p.offset;
    return linear > 0 && linear < 1 ? p.slope : 0.0f;
  }
  if constexpr (kind == K::hard_swish) return x <= -3.0f ? 0.0f : x >= 3.0f ? 1.0f : x * (1.0f / 3.0f) + 0.5f;
  if constexpr (kind == K::silu) {
    const float s = sigmoid_of(x);
    return s * (1.0f + x * (1.0f - s));
  }
  if constexpr (kind == K::gelu) return normal_cdf(x) + x * 0.39894228f * exp_of(-0.5f * x * x);
  if constexpr (kind == K::gelu_tanh) {
    const float s = sigmoid_of(gelu_argument(x));
    return s * (1.0f + x * (1.0f - s) * (1.59576912f + 0.21406447f * x * x));
  }
  if constexpr (kind == K::affine) return p.slope;
}

// Calls visit() with the kind as a compile-time constant.
template <typename Visit>
auto with_kind(ActivationKind kind, Visit visit) {
  using K = ActivationKind;
  switch (kind) {
    case K::clip:
      return visit(std::integral_constant<K, K::clip>{});
    case K::leaky_relu:
      return visit(std::integral_constant<K, K::leaky_relu>{});
    case K::sigmoid:
      return visit(std::integral_constant<K, K::sigmoid>{});
    case K::hard_sigmoid:
      return visit(std::integral_constant<K, K::hard_sigmoid>{});
    case K::hard_swish:
      return visit(std::integral_constant<K, K::hard_swish>{});
    case K::silu:
      return visit(std::integral_constant<K, K::silu>{});
    case K::gelu:
      return visit(std::integral_constant<K, K::gelu>{});
    case K::gelu_tanh:
      return visit(std::integral_constant<K, K::gelu_tanh>{});
    case K::affine:
      break;
  }
  return visit(std::integral_constant<K, K::affine>{});
}

}  // namespace convoy::kernels::activation
