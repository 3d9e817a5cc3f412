// Makes stored images into images of the output's size, as the first operation on a device. A cut
// is the part of a stored image that a sample's crop needs. It is resized with the bits of Pillow's
// bilinear resizing (kernels/device/bilinear.h), and mirrored if the transform says so.
//   resample_forward  {cuts u8 [bytes], transforms u8 [N, sizeof(SampleTransform)]}
//                     -> {images u8 [N, C, H, W]}
// The cuts lie anywhere in the bytes, so a ring of batches and a whole resident set are read alike;
// the images lie channels_last. Outputs that have no pixel (padding), and all of a sample that is
// not valid, get the fill.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device/kernel.h"
#include "kernels/device/sample_transform.h"

namespace convoy::kernels {

struct ResampleProblem {
  std::vector<std::uint8_t> fill;  // [C], C at most kMostImageChannels
};
inline constexpr int kMostImageChannels = 8;

// Describes an operand that holds one SampleTransform for each sample.
TensorDesc transforms_desc(std::int64_t samples);
// Throws std::invalid_argument unless operands and problem fit together.
void check_resample(const ResampleProblem& problem, const KernelRequest& request);

CONVOY_KERNEL_WITH_CPU(resample_forward, ResampleProblem, nullptr);

}  // namespace convoy::kernels
