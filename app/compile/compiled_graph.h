// A step graph with its kernels made, its layouts chosen and every buffer inside the step at its offset. It is a value:
// it knows no addresses, so any number of sessions can bind it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/graph/step_graph.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

struct CompiledGraph {
  StepGraph graph;
  std::vector<kernels::TensorDesc> descs;  // of every tensor
  std::vector<kernels::Kernel> kernels;    // of every node; empty for all_reduce and transfers
  // In bytes, from the start of the activations' region; -1 for tensors that are in another region.
  std::vector<std::int64_t> tensor_offset;
  std::vector<std::int64_t> workspace_offset;  // of every node; -1 without a workspace
  std::int64_t activation_bytes = 0;
};

// `parameter_layouts` (by name) are taken as given; other parameters get what the first kernel that reads them
// prefers. `reuse_delay`: nodes that must pass before a freed buffer is reused, so that lanes do not wait for each
// other. It is halved until it costs at most max(128 MiB, 1/32 of the arena).
CompiledGraph compile_graph(StepGraph graph, kernels::Backend backend,
                            const std::map<std::string, kernels::TensorDesc>& parameter_layouts = {},
                            int reuse_delay = 0);

// Gives the buffers of a graph offsets anew; its layouts are chosen and its kernels made.
CompiledGraph assign_buffers(StepGraph graph, std::vector<kernels::TensorDesc> descs,
                             std::vector<kernels::Kernel> kernels, int reuse_delay = 0);

// By name, as compile_graph() takes them.
std::map<std::string, kernels::TensorDesc> parameter_layouts(const CompiledGraph& compiled);

}  // namespace convoy::app
