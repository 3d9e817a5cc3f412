// Activations of single elements, y = f(x). A NaN stays a NaN.
//   clip          min(max(x, min), max); ReLU6 is clip from 0 to 6
//   leaky_relu    x > 0 ? x : slope x
//   sigmoid       1 / (1 + exp(-x))
//   hard_sigmoid  min(max(slope x + offset, 0), 1); PyTorch has slope 1/6, offset 1/2
//   hard_swish    x min(max(x / 6 + 1/2, 0), 1) (Howard et al., ICCV 2019)
//   silu          x sigmoid(x)
//   gelu          x (1 + erf(x / sqrt(2))) / 2 (Hendrycks, Gimpel, 2016)
//   gelu_tanh     x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2
//   affine        slope x + offset
// The operations are
//   activation_forward   {x} -> {y}            y may be x
//   activation_backward  {x or y, dy} -> {dx}  dx may be either input
// All tensors have the same shape and layout, which may be any. Backward reads y for clip and
// leaky_relu, whose derivative at x follows from y exactly, and x for the others. At the ends of
// clip, and of the linear parts of hard_sigmoid and hard_swish, the gradient is that of the
// constant side, as in PyTorch.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

enum class ActivationKind : std::uint8_t {
  clip,
  leaky_relu,
  sigmoid,
  hard_sigmoid,
  hard_swish,
  silu,
  gelu,
  gelu_tanh,
  affine,
};
inline constexpr const char* kActivationNames[] = {
    "clip", "leaky_relu", "sigmoid", "hard_sigmoid", "hard_swish", "silu", "gelu", "gelu_tanh", "affine"};
inline constexpr int kActivationKinds = sizeof kActivationNames / sizeof *kActivationNames;
constexpr const char* name_of(ActivationKind kind) { return kActivationNames[static_cast<int>(kind)]; }

struct ActivationProblem {
  ActivationKind kind = ActivationKind::clip;
  float min = 0, max = 6;  // for clip; min < max, and either may be infinite
  float slope = 0.01f;     // for leaky_relu, at least 0; for hard_sigmoid, above 0; for affine, finite
  float offset = 0.5f;     // for hard_sigmoid; for affine, finite
};

// Returns whether activation_backward takes y as its first input, not x.
constexpr bool activation_backward_reads_y(ActivationKind kind) {
  return kind == ActivationKind::clip || kind == ActivationKind::leaky_relu;
}

// Throws std::invalid_argument if a parameter is outside its range above.
void require_activation(const char* operation, const ActivationProblem& problem);

CONVOY_KERNEL(activation_forward, ActivationProblem);
CONVOY_KERNEL(activation_backward, ActivationProblem);

}  // namespace convoy::kernels
