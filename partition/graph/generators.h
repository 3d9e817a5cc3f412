// Generates task graphs of training steps at op granularity: forward ops, their parameters, the
// backward ops that read the activations kept for them, gradient reductions and updates. A time is
// operations divided by a rate. Sizes follow from shapes.
#pragma once

#include "partition/graph/task_graph.h"

namespace convoy::partition {

struct GeneratorOptions {
  NodeIndex nodes = 10000;  // wanted number; the result is within a few per cent
  std::uint64_t seed = 1;
};

// A word-level recurrent net: layers × time steps of LSTM cells, each some twenty ops.
TaskGraph generate_recurrent(const GeneratorOptions& options);
// A character-level convolutional-recurrent net: parallel convolutions of several widths over
// characters, then highway layers, then recurrent layers over words.
TaskGraph generate_character_crn(const GeneratorOptions& options);
// A wide residual network: the stem, residual blocks with k parallel convolution groups.
TaskGraph generate_wide_resnet(const GeneratorOptions& options);
// A transformer: layers × heads, attention and feed-forward at op granularity.
TaskGraph generate_transformer(const GeneratorOptions& options);
// An Eidetic-3D-LSTM-like net: layers × time steps, each cell recalling a window of earlier
// memories.
TaskGraph generate_e3d(const GeneratorOptions& options);
// A random layered graph, `degree` edges a node on average, for limits and fuzzing.
TaskGraph generate_random(const GeneratorOptions& options, double degree = 10);

// Generates a graph by the name of its family: recurrent, crn, wide-resnet, transformer, e3d,
// random (degree 10), sparse (degree 3). Throws std::runtime_error that lists the names.
TaskGraph generate_task_graph(std::string_view family, const GeneratorOptions& options);

}  // namespace convoy::partition
