// How a step's images come to be: by default the first layer's input is filled by whoever runs the step; on a device it
// can be made by the step itself, from stored images and draws of the augmentation.
#pragma once

#include <vector>

#include "app/model/step_graph.h"

namespace convoy::app {

struct StoredInput {
  kernels::Shape images;                      // [M, C, H, W]: a ring of batches, or a whole set
  kernels::DType dtype = kernels::DType::u8;  // f32: augmented and normalised on the host
  std::vector<float> scale, shift;            // y = scale * pixel + shift, a channel each
};

// Puts the node that makes the images in front of the graph; the graph's images are then the stored ones.
void read_stored_images(StepGraph& graph, const StoredInput& input);

}  // namespace convoy::app
