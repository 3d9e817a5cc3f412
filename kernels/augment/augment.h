// A batch of stored images made ready for the first layer: crop, flip, cut out, normalise, convert. What is random
// was drawn before, on the host, so that it follows the sample and not the device.
//   augment_forward  {images u8 [N, C, SH, SW], draws i32 [N, kAugmentDraws]} -> {y [N, P, H, W]}
// Images lie channels_last, y too, f32 or bf16; P >= C, and the channels behind C are zero: 8 of them let a
// convolution read 16 bytes at a time. y[c] = scale[c] * pixel + shift[c], so with a mean and deviation in units
// of [0, 1] scale is 1 / (255 deviation) and shift -mean / deviation. What the crop reaches outside the image
// is black (pixel 0), as in zero padding before normalisation; what is cut out is 0 after it (DeVries, Taylor,
// arXiv 1708.04552). Samples that are not valid are all zero.
#pragma once

#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::kernels {

// The columns of draws.
enum AugmentDraw : int {
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

namespace reference {
Kernel augment_forward(const AugmentProblem& problem, KernelRequest& request);
}  // namespace reference
namespace cuda {
Kernel augment_forward(const AugmentProblem& problem, KernelRequest& request);
}  // namespace cuda

inline Kernel augment_forward(Backend backend, const AugmentProblem& problem, KernelRequest& request) {
  return select(backend, reference::augment_forward, nullptr, cuda::augment_forward)(problem, request);
}

}  // namespace convoy::kernels
