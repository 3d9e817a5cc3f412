// The kernels of the update: the optimizer, which runs after backward or inside it
// (early_updates.h), and the two kernels that clip gradients before.
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
// per parameter, in ascending order, and each starts at a multiple of 128 elements. First come the
// parameters that the optimizer updates together at the end of the step; the flat buffer of
// gradients ends after them. Then come those that backward updates (early_updates.h); the flat
// buffers of optimizer states end after them. Frozen parameters come last.
struct FlatLayout {
  FlatLayout() = default;
  explicit FlatLayout(const CompiledGraph& compiled);
  std::int64_t elements = 0;           // elements of all parameters
  std::int64_t trained_elements = 0;   // elements of all parameters that are not frozen
  std::int64_t gradient_elements = 0;  // elements of the parameters that are updated together
  std::vector<kernels::ParameterSegment> segments;
  std::size_t trained = 0;    // the number of segments that are not frozen
  std::size_t gradients = 0;  // the number of segments that are updated together
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

// Makes the kernels. They are empty if no parameters are updated together.
UpdateKernels make_update_kernels(const StepOptions& options, const FlatLayout& flat);

// Makes a kernel that updates buffers of `elements` elements. problem.segments says which ranges.
// `copied` says whether it writes bf16 copies, too.
kernels::Kernel make_update_kernel(const kernels::OptimizerProblem& problem, kernels::Backend backend,
                                   std::int64_t elements, bool copied);
// Describes for the optimizer the range of the parameter in a buffer. It begins at `offset`.
kernels::ParameterSegment segment_of(const GraphParameter& parameter, const kernels::TensorDesc& desc,
                                     std::int64_t offset);

}  // namespace convoy::app
