// The kernels that run after backward: the optimizer, and before it the two kernels that clip
// gradients.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/compile/compiled_graph.h"
#include "app/compile/step_options.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

// The offset and length of every parameter in the flat buffers, in elements. There is one segment
// per parameter, in ascending order, and each starts at a multiple of 128 elements. Frozen
// parameters come last. They have neither gradients nor optimizer states, so the flat buffers of
// gradients and states end before them.
struct FlatLayout {
  FlatLayout() = default;
  explicit FlatLayout(const CompiledGraph& compiled);
  std::int64_t elements = 0;  // elements of all parameters
  // Elements of the parameters that have a gradient. These parameters come first.
  std::int64_t trained_elements = 0;
  std::vector<kernels::ParameterSegment> segments;
  // The number of segments that have a gradient. These segments come first.
  std::size_t trained = 0;
  // For each segment: the parameter's index in StepGraph::parameters.
  std::vector<int> parameter;
  bool copied = false;  // whether a parameter has a bf16 copy
};

struct UpdateKernels {
  kernels::Kernel update, norm, clip;
  // Returns the bytes of the workspace. The kernels run one after the other, so they share it.
  // `clip` needs no workspace.
  std::size_t workspace_bytes() const { return std::max(update.workspace_bytes, norm.workspace_bytes); }
};

// Makes the kernels. They are empty if no parameter is trained.
UpdateKernels make_update_kernels(const StepOptions& options, const FlatLayout& flat);

}  // namespace convoy::app
