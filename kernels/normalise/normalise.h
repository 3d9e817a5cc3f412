// Prepares resampled images for the first layer: normalises and converts them, and pads their
// channels.
//   normalise_forward  {images u8 [N, C, H, W], transforms u8 [N, sizeof(SampleTransform)]}
//                      -> {y [N, P, H, W]}
// Images are channels_last. y is channels_last, f32 or bf16, with P >= C. Its channels from C on
// are zero: a P of 8 lets a convolution read 16 bytes at a time.
//   y[c] = scale[c] * pixel + shift[c]
// is rounded after the product and after the sum, as on the host. So for a mean and a deviation in
// units of [0, 1], scale is 1 / (255 deviation) and shift is -mean / deviation. y is 0, the mean
// colour, in areas that the transform erases, and in padding unless an image operation may have
// moved the padding. Samples that are not valid are zero everywhere.
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
