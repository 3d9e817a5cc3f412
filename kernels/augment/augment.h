// A batch of stored images made ready for the first layer: crop, flip, cut out, normalise, convert. What is random
// was drawn before, on the host, so that it follows the sample and not the device.
//   augment_forward  {images [M, C, SH, SW], draws i32 [N, kAugmentDraws]} -> {y [N, P, H, W]}
// Sample n of y comes from image draws[n][kImage] of the M, so a ring of batches and a whole resident set are read alike.
// Images lie channels_last and are u8, or f32 where the host made them ready and only the type and the layout are left;
// y lies channels_last, f32 or bf16; P >= C, and the channels behind C are zero: 8 of them let a convolution read 16
// bytes at a time. y[c] = scale[c] * pixel + shift[c], rounded after the product and after the sum as on the host, so
// with a mean and deviation in units of [0, 1] scale is 1 / (255 deviation) and shift -mean / deviation. Outside the
// image and in what is cut out (DeVries, Taylor, arXiv 1708.04552) y is 0, the mean colour. Samples that are not valid
// are all zero.
#pragma once

#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::kernels {

// The columns of draws.
enum AugmentDraw : int {
  kImage,    // of the M
  kCropRow,  // of the image that becomes row 0 of y; may be negative
  kCropColumn,
  kFlip,    // not 0: mirrored left to right
  kCutRow,  // of y, upper left corner of the square that is cut out; may be negative
  kCutColumn,
  kCutSize,  // 0: none
  kAugmentDraws
};

struct AugmentProblem {
  std::vector<float> scale, shift;  // [C], C at most kAugmentChannels
};
inline constexpr int kAugmentChannels = 8;

// Throws std::invalid_argument unless operands and problem fit together.
void check_augment(const AugmentProblem& problem, const KernelRequest& request);

CONVOY_KERNEL_WITH_CPU(augment_forward, AugmentProblem, nullptr);

}  // namespace convoy::kernels
