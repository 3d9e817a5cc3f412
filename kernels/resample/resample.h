// Resizes stored images to the output's size, with the bits of Pillow's bilinear resizing
// (kernels/device/bilinear.h), and mirrors them if the transform says so. A cut is the part of a
// stored image that a sample's crop needs.
//   resample_forward  {cuts u8 [bytes], transforms u8 [N, sizeof(SampleTransform)]}
//                     -> {images u8 [N, C, H, W]}
// A cut may begin at any byte of `cuts`, which may be a slot of a ring of batches, or a whole data
// set on the device. The images are channels_last. Padding pixels, and all pixels of a sample that
// is not valid, get `fill`.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device/kernel.h"
#include "kernels/device/sample_transform.h"

namespace convoy::kernels {

struct ResampleProblem {
  std::vector<std::uint8_t> fill;  // [C], with C at most kMostImageChannels
};
inline constexpr int kMostImageChannels = 8;

// Returns the description of an operand that holds one SampleTransform per sample.
TensorDesc transforms_desc(std::int64_t samples);
// Throws std::invalid_argument unless operands and problem fit together.
void check_resample(const ResampleProblem& problem, const KernelRequest& request);

CONVOY_KERNEL_WITH_CPU(resample_forward, ResampleProblem, nullptr);

}  // namespace convoy::kernels
