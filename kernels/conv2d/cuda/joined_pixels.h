// Lets TMA read 1x1 convolutions whose pixels are not a multiple of 16 bytes, such as 58 channels
// of bf16. Neighbouring pixels are joined: four pixels become a row of 232 channels, and the
// convolution becomes one with four groups that share their filters (group_packing.h). Only the
// filters must be copied. Infinity or NaN times zero is NaN, so a pixel that is not finite may
// affect the outputs of the pixels joined with it. CUDA builds only.
#pragma once

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

// Returns the task over joined pixels, with Task::joined set, or the task unchanged if joining is
// not needed, not possible or not faster. The result depends only on geometry, direction and type.
Task with_joined_pixels(const Task& task);

}  // namespace convoy::kernels::conv
