// Makes the step compute its images from stored pixels. Without this pass the caller of a step
// fills the first layer's input. With this pass, nodes of the step resample, augment and normalise
// the stored pixels, as the transform of each sample says.
#pragma once

#include <cstdint>
#include <vector>

#include "app/graph/step_graph.h"

namespace convoy::app {

struct StoredInput {
  // The size of the buffer of stored pixels. It is a ring of batches or holds a whole image set.
  std::int64_t bytes = 0;
  std::int64_t channels = 0;  // channels of a stored pixel
  // Normalisation y = scale * pixel + shift, with one value per channel.
  std::vector<float> scale, shift;
  // For each channel: the value of pixels outside the image.
  std::vector<std::uint8_t> fill;
  int most_image_ops = 0;  // the most image operations for one sample
};

// Inserts nodes that make the images, before all other nodes of the graph. Afterwards graph.images
// are the stored pixels.
void read_stored_images(StepGraph& graph, const StoredInput& input);

// Returns whether read_stored_images() put the node into the graph.
bool makes_stored_images(const StepGraph& graph, const Node& node);

}  // namespace convoy::app
