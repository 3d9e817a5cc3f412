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
  std::set<std::string> names;  // empty if no layer can run over slices
  std::int64_t samples = 0;
};

// Finds the convolutions whose weight gradients are summed over pieces of the batch
// (passes/weight_gradient_pieces.h). Returns all layers from the first to the last of them, and the
// neighbouring layers that have no weights.
SlicedLayers layers_to_slice(const CompiledGraph& train);

struct SlicedStep {
  CompiledGraph step;
  // For each node: the index of the original step's node that it equals or is a slice of.
  std::vector<int> origin;
  std::vector<double> share;  // for each node: the fraction of the batch that it computes
};

// Returns a step in which the nodes of `layers` run over slices of `samples` samples. Nodes that
// need the whole batch are not sliced, and the tensors that they read or write are not split. Every
// result has the same bits as without slices. Returns nothing if a kernel cannot compute a slice. A
// freed buffer may be reused at once: there is no reuse delay (compiled_graph.h).
std::optional<SlicedStep> in_slices(const CompiledGraph& step, const std::set<std::string>& layers,
                                    std::int64_t samples, kernels::Backend backend);

}  // namespace convoy::app
