// The kernels that run after backward: the optimizer over the flat buffers, and the two that clip
// gradients before it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/compile/compiled_graph.h"
#include "app/compile/step_options.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

// The offset and length of every parameter in the flat buffers, in elements. Segments are in
// ascending order, one for each parameter, and each starts at a multiple of 128. Frozen parameters
// come last, so that the buffers of gradients and optimizer states end before them.
struct FlatLayout {
  FlatLayout() = default;
  explicit FlatLayout(const CompiledGraph& compiled);
  std::int64_t elements = 0;          // of all parameters
  std::int64_t trained_elements = 0;  // of those that have a gradient, the first of them
  std::vector<kernels::ParameterSegment> segments;
  std::size_t trained = 0;     // the first so many segments have a gradient
  std::vector<int> parameter;  // by segment: index into StepGraph::parameters
  bool copied = false;         // some parameters have a bf16 copy
};

struct UpdateKernels {
  kernels::Kernel update, norm, clip;
  // The kernels run one after the other, so they share one workspace. `clip` needs none.
  std::size_t workspace_bytes() const { return std::max(update.workspace_bytes, norm.workspace_bytes); }
};

// Returns empty kernels if no parameter is trained.
UpdateKernels make_update_kernels(const StepOptions& options, const FlatLayout& flat);

}  // namespace convoy::app
