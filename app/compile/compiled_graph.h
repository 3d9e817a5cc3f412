// A compiled graph is a step graph whose kernels are made, whose layouts are chosen, and in which
// every buffer inside the step has an offset. It knows no addresses, so any number of sessions can
// bind it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/graph/step_graph.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

struct CompiledGraph {
  StepGraph graph;
  std::vector<kernels::TensorDesc> descs;  // by TensorId
  std::vector<kernels::Kernel> kernels;    // by node; empty for all_reduce and transfers
  // By TensorId, in bytes from the start of the activations' region; -1 for tensors in other
  // regions.
  std::vector<std::int64_t> tensor_offset;
  std::vector<std::int64_t> workspace_offset;  // by node, likewise; -1 without a workspace
  std::int64_t activation_bytes = 0;
  // By TensorId, in bytes from the start of the host memory in which activations wait; -1 for
  // others.
  std::vector<std::int64_t> host_offset;
  std::int64_t host_bytes = 0;
};

// Makes kernels, chooses layouts and assigns offsets. Parameters that `parameter_layouts` names
// keep the layout given there. Others get the layout that the first kernel to read them prefers.
// `reuse_delay`: nodes that must pass before a freed buffer is reused, so that lanes do not wait
// for each other. It is halved until it costs at most max(128 MiB, 1/32 of the arena).
// Throws std::runtime_error with the layer, the operation and the backend if a kernel cannot be
// made.
CompiledGraph compile_graph(StepGraph graph, kernels::Backend backend,
                            const std::map<std::string, kernels::TensorDesc>& parameter_layouts = {},
                            int reuse_delay = 0);

// Assigns new offsets to the buffers of a graph whose layouts are chosen and whose kernels are
// made.
CompiledGraph assign_buffers(StepGraph graph, std::vector<kernels::TensorDesc> descs,
                             std::vector<kernels::Kernel> kernels, int reuse_delay = 0);

// Returns the layout of every parameter by its name, as compile_graph() takes them.
std::map<std::string, kernels::TensorDesc> parameter_layouts(const CompiledGraph& compiled);

}  // namespace convoy::app
