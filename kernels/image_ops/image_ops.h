// Applies each sample's image operations (kernels/device/image_op.h) one after the other. All
// backends give the same bits.
//   image_ops_forward  {images u8 [N, C, H, W], transforms u8 [N, sizeof(SampleTransform)]}
//                      -> {y u8 [N, C, H, W]}
// Images are channels_last. C is 1 or 3; H and W are at most kMostImageOpExtent. Samples that are
// not valid stay as they are, and their transforms are not read.
#pragma once

#include "kernels/device/kernel.h"
#include "kernels/device/sample_transform.h"

namespace convoy::kernels {

struct ImageOpsProblem {
  // The most operations that any sample has. If this is 1, the device needs no workspace.
  int most = kMostImageOps;
};

// Throws std::invalid_argument unless operands and problem fit together. Sets layouts that are
// open.
void check_image_ops(const ImageOpsProblem& problem, KernelRequest& request);

CONVOY_KERNEL_WITH_CPU(image_ops_forward, ImageOpsProblem, nullptr);

}  // namespace convoy::kernels
