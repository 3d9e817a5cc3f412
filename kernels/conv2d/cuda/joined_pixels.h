// Lets TMA read 1x1 convolutions whose channels do not fill whole 16-byte vectors (58 channels in
// bf16 are 116 bytes). Neighbouring pixels are joined: four pixels of 58 channels are a row of 232,
// and the convolution becomes one of four groups, which all have the same filters. The tensors in
// memory are the same; only the filters, which are few, need a copy. Groups in one pack are
// multiplied by each other's zeros (group_packing.h), so a pixel that is not finite may reach its
// neighbours. CUDA builds only.
#pragma once

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

// Returns the task over joined pixels, with Task::joined set. Returns the task as it is if it needs
// none, if an image's pixels do not divide into such rows, or if the zeros would cost more than
// unaligned rows do. The answer depends on the geometry, the direction and the type only.
Task with_joined_pixels(const Task& task);

}  // namespace convoy::kernels::conv
