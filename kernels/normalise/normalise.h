// Prepares resampled images for the first layer: normalises and converts them, and pads their
// channels.
//   normalise_forward  {images u8 [N, C, H, W], transforms u8 [N, sizeof(SampleTransform)]}
//                      -> {y [N, P, H, W]}
// Images are channels_last. y is channels_last, f32 or bf16, with P >= C. Its channels from C on
// are zero padding: with P = 8, for example, a convolution can read 16 bytes at a time.
//   y[c] = scale[c] * pixel + shift[c]
// with scale = 1 / (255 deviation) and shift = -mean / deviation. The product is rounded before the
// addition, as on the host. y is 0, the mean colour, in areas that the transform erases, in padding
// (unless an image operation may have moved the padding), and in samples that are not valid.
#pragma once

#include <vector>

#include "kernels/device/kernel.h"
#include "kernels/resample/resample.h"

namespace convoy::kernels {

struct NormaliseProblem {
  std::vector<float> scale, shift;  // [C] each, with C at most kMostImageChannels
};

// Throws std::invalid_argument unless operands and problem fit together.
void check_normalise(const NormaliseProblem& problem, const KernelRequest& request);

CONVOY_KERNEL_WITH_CPU(normalise_forward, NormaliseProblem, nullptr);

}  // namespace convoy::kernels
