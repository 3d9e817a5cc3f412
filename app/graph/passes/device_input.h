// The images of a step on a device. By default whoever runs the step fills the first layer's input;
// on a device the step can make it from stored pixels: resample, change and normalise them as each
// sample's transform says.
#pragma once

#include <cstdint>
#include <vector>

#include "app/graph/step_graph.h"

namespace convoy::app {

struct StoredInput {
  std::int64_t bytes = 0;           // of all stored pixels: a ring of batches, or a whole set
  std::int64_t channels = 0;        // of a stored pixel
  std::vector<float> scale, shift;  // y = scale * pixel + shift, a channel each
  std::vector<std::uint8_t> fill;   // of pixels outside the image, a channel each
  int most_image_ops = 0;           // image operations that a transform may hold
};

// Puts the nodes that make the images in front of the graph; the graph's images are then the stored
// pixels.
void read_stored_images(StepGraph& graph, const StoredInput& input);

// Tells whether read_stored_images() put the node into the graph.
bool makes_stored_images(const StepGraph& graph, const Node& node);

}  // namespace convoy::app
