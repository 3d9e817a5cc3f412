// Runs the layers with the largest tensors over slices of the batch, one slice after the other, so
// that only a slice of each tensor inside these layers exists at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/compile/compiled_graph.h"

namespace convoy::app {

// The layers that can run over slices of the batch, and the samples in the smallest slice.
struct SlicedLayers {
  std::set<std::string> names;  // empty if there are none
  std::int64_t samples = 0;
};

// Returns the layers from the first convolution whose weight gradient is summed in pieces
// (passes/weight_gradient_pieces.h) to the last, with the layers around them that have no weights.
SlicedLayers layers_to_slice(const CompiledGraph& train);

struct SlicedStep {
  CompiledGraph step;
  // For each node: the index of the node of the whole step that it is, or that it is a slice of.
  std::vector<int> origin;
  std::vector<double> share;  // for each node: its share of the samples of that node
};

// Returns the step in which the nodes of these layers run over slices of `samples` samples. Nodes
// that must see the whole batch stay whole, and so do the tensors that such nodes read or write.
// Every result has the same bits. Returns nothing if a kernel cannot compute a slice. Buffers get
// no reuse delay (compiled_graph.h).
std::optional<SlicedStep> in_slices(const CompiledGraph& step, const std::set<std::string>& layers,
                                    std::int64_t samples, kernels::Backend backend);

}  // namespace convoy::app
