// Generates task graphs of training steps. They contain forward ops, variables, backward ops, sums
// of gradients and updates. Output sizes are computed from tensor shapes. Times are computed from
// the floating-point operations and bytes of an op and the speed of a GPU.
#pragma once

#include "partition/graph/task_graph.h"

namespace convoy::partition {

struct GeneratorOptions {
  NodeIndex nodes = 10000;  // wanted number of nodes; the graph differs by a few per cent
  std::uint64_t seed = 1;
};

// A word-level recurrent network: LSTM cells of 12 forward ops for each layer and time step.
TaskGraph generate_recurrent(const GeneratorOptions& options);
// A character-level convolutional and recurrent network: parallel convolutions of several widths
// over characters, then highway layers, then recurrent layers over words.
TaskGraph generate_character_crn(const GeneratorOptions& options);
// A wide residual network: the stem, then residual blocks of 8 parallel groups of convolutions.
TaskGraph generate_wide_resnet(const GeneratorOptions& options);
// A transformer. A layer has separate ops for each attention head, and then the ops of its
// feed-forward part.
TaskGraph generate_transformer(const GeneratorOptions& options);
// A network like Eidetic 3D LSTM, with a cell for each layer and time step. A cell reads the
// memories of several earlier time steps.
TaskGraph generate_e3d(const GeneratorOptions& options);
// A random acyclic graph with at most `degree` edges per node on average.
TaskGraph generate_random(const GeneratorOptions& options, double degree = 10);

// Generates a graph of a family: recurrent, crn, wide-resnet, transformer, e3d, random (degree 10)
// or sparse (degree 3). Throws std::runtime_error that lists the families.
TaskGraph generate_task_graph(std::string_view family, const GeneratorOptions& options);

}  // namespace convoy::partition
