// By default the caller of a step fills the first layer's input. On a device the step can make it
// from stored pixels: it resamples, changes and normalises them as each sample's transform says.
#pragma once

#include <cstdint>
#include <vector>

#include "app/graph/step_graph.h"

namespace convoy::app {

struct StoredInput {
  std::int64_t bytes = 0;           // size of all stored pixels: a ring of batches, or a whole set
  std::int64_t channels = 0;        // channels of a stored pixel
  std::vector<float> scale, shift;  // y = scale * pixel + shift, a channel each
  std::vector<std::uint8_t> fill;   // value of pixels outside the image, a channel each
  int most_image_ops = 0;           // image operations that a transform may hold
};

// Puts nodes that make the images in front of the graph. graph.images are then the stored pixels.
void read_stored_images(StepGraph& graph, const StoredInput& input);

// Tells whether read_stored_images() put the node into the graph.
bool makes_stored_images(const StepGraph& graph, const Node& node);

}  // namespace convoy::app
