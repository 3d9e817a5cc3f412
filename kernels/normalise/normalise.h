// Prepares resampled images for the first layer: normalises, converts, and pads with channels.
//   normalise_forward  {images u8 [N, C, H, W], transforms u8 [N, sizeof(SampleTransform)]}
//                      -> {y [N, P, H, W]}
// Images are channels_last; y is channels_last, f32 or bf16; P >= C, and channels from C on are
// zero: 8 of them let a convolution read 16 bytes at a time. y[c] = scale[c] * pixel + shift[c],
// rounded after the product and after the sum as on the host, so with a mean and deviation in units
// of [0, 1] scale is 1 / (255 deviation) and shift
// -mean / deviation. y is 0, the mean colour, in what the transform erases, and where it has no
// pixel (padding) unless an image operation may have moved that. Samples that are not valid are all
// zero.
#pragma once

#include <vector>

#include "kernels/device/kernel.h"
#include "kernels/resample/resample.h"

namespace convoy::kernels {

struct NormaliseProblem {
  std::vector<float> scale, shift;  // [C], C at most kMostImageChannels
};

// Throws std::invalid_argument unless operands and problem fit together.
void check_normalise(const NormaliseProblem& problem, const KernelRequest& request);

CONVOY_KERNEL_WITH_CPU(normalise_forward, NormaliseProblem, nullptr);

}  // namespace convoy::kernels
