// Generates task graphs of training steps: forward ops, their variables, backward ops, sums of
// gradients, and updates. Sizes follow from tensor shapes, and times from operations and bytes
// divided by the rates of a GPU.
#pragma once

#include "partition/graph/task_graph.h"

namespace convoy::partition {

struct GeneratorOptions {
  NodeIndex nodes = 10000;  // wanted number of nodes; the result is within a few per cent
  std::uint64_t seed = 1;
};

// A word-level recurrent network: layers × time steps of LSTM cells with 12 forward ops each.
TaskGraph generate_recurrent(const GeneratorOptions& options);
// A character-level convolutional and recurrent network: parallel convolutions of several widths
// over characters, then highway layers, then recurrent layers over words.
TaskGraph generate_character_crn(const GeneratorOptions& options);
// A wide residual network: the stem, then residual blocks of 8 parallel groups of convolutions.
TaskGraph generate_wide_resnet(const GeneratorOptions& options);
// A transformer: layers × heads, with single ops of attention and feed-forward.
TaskGraph generate_transformer(const GeneratorOptions& options);
// A network like Eidetic 3D LSTM: layers × time steps, in which each cell recalls a window of
// earlier memories.
TaskGraph generate_e3d(const GeneratorOptions& options);
// A random acyclic graph with at most `degree` edges per node on average.
TaskGraph generate_random(const GeneratorOptions& options, double degree = 10);

// Generates a graph of a family: recurrent, crn, wide-resnet, transformer, e3d, random (degree 10)
// or sparse (degree 3). Throws std::runtime_error that lists the families.
TaskGraph generate_task_graph(std::string_view family, const GeneratorOptions& options);

}  // namespace convoy::partition
