// The first half of compiling a StepGraph for one rank: kernels made, layouts settled, lifetimes known. What remains
// is to give every tensor an address (session.cpp) and to bind the kernels to them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/graph/step_graph.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

struct CompiledGraph {
  StepGraph graph;
  std::vector<kernels::TensorDesc> descs;  // of every tensor, all layouts settled
  std::vector<kernels::Kernel> kernels;    // of every node; empty for all_reduce and transfers
  // Byte offsets from the start of the activations' part of the arena; -1 for tensors that live elsewhere.
  std::vector<std::int64_t> tensor_offset;
  std::vector<std::int64_t> workspace_offset;  // of every node; -1 without a workspace
  std::int64_t activation_bytes = 0;
};

// `parameter_layouts` (by name) are taken as given; parameters that are not in it get what the first kernel that
// reads them prefers. `control` must outlive the kernels. `reuse_delay`: for so many nodes after its last
// use nothing new takes a buffer's or workspace's place, as it would have to wait for a reader that may be behind, on
// another lane; for fewer nodes, or none, where that would take more than both 128 MiB and a 32nd of the arena.
CompiledGraph compile_graph(StepGraph graph, kernels::Backend backend, const kernels::StepControl* control,
                            const std::map<std::string, kernels::TensorDesc>& parameter_layouts = {},
                            int reuse_delay = 0);

// The second half of compile_graph() alone, for a graph whose layouts are settled and whose kernels are made: gives every
// tensor inside the step its offset.
CompiledGraph assign_buffers(StepGraph graph, std::vector<kernels::TensorDesc> descs,
                             std::vector<kernels::Kernel> kernels, int reuse_delay = 0);

// By name, as compile_graph() takes them.
std::map<std::string, kernels::TensorDesc> parameter_layouts(const CompiledGraph& compiled);

}  // namespace convoy::app
