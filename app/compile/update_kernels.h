// The kernels that follow backward: the optimizer over the flat buffers, and the two that clip gradients before it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/compile/compiled_graph.h"
#include "app/compile/step_options.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

// The place of every parameter in the flat buffers, in elements. Segments are in ascending order, one a parameter,
// and each starts at a multiple of 128.
struct FlatLayout {
  FlatLayout() = default;
  explicit FlatLayout(const CompiledGraph& compiled);
  std::int64_t elements = 0;
  std::vector<kernels::ParameterSegment> segments;
  std::vector<int> parameter;  // of every segment: index into the graph's list
  bool copied = false;         // products read some parameters as bf16
};

struct UpdateKernels {
  kernels::Kernel update, norm, clip;
  // The largest of theirs, as they run one after the other.
  std::size_t workspace_bytes() const { return std::max(update.workspace_bytes, norm.workspace_bytes); }
};

// Returns empty kernels if there are no parameters.
UpdateKernels make_update_kernels(const StepOptions& options, const FlatLayout& flat);

}  // namespace convoy::app
