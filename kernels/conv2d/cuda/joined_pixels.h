// Lets TMA read 1x1 convolutions whose channels do not fill whole 16-byte vectors (58 channels in
// bf16 are 116 bytes). Neighbouring pixels are joined: four pixels of 58 channels are a row of 232
// channels, and the convolution becomes one of four groups that all have the same filters. The
// tensors in memory stay as they are; only the filters, which are few, need a copy. In this copy, a
// pixel is multiplied by zeros for the outputs of the pixels joined with it (group_packing.h).
// Infinity or NaN times zero is NaN, so a pixel that is not finite may reach these outputs. CUDA
// builds only.
#pragma once

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

// Returns the task over joined pixels, with Task::joined set. Returns the task unchanged if it
// needs no joining, if the pixels of an image do not divide into such rows, or if the zeros would
// cost more than unaligned rows do. The result depends only on the geometry, the direction and the
// type.
Task with_joined_pixels(const Task& task);

}  // namespace convoy::kernels::conv
