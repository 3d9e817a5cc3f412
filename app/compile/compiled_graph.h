// A compiled graph is a step graph with kernels, layouts and an offset for every buffer inside the
// step. It holds no addresses, so any number of sessions can bind it to their memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/graph/step_graph.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

inline constexpr int kReuseDelay = 4, kLongReuseDelay = 16;

struct CompiledGraph {
  StepGraph graph;
  std::vector<kernels::TensorDesc> descs;  // for each TensorId: type, shape and layout
  // For each node: its kernel, which is empty for all_reduce and transfers.
  std::vector<kernels::Kernel> kernels;
  // For each TensorId: bytes from the start of the region of the activations; -1 for tensors in
  // other regions.
  std::vector<std::int64_t> tensor_offset;
  // For each node: bytes of its workspace from the start of the region of the activations; -1
  // without one.
  std::vector<std::int64_t> workspace_offset;
  std::int64_t activation_bytes = 0;
  // For each TensorId: bytes from the start of the host memory in which activations wait; -1 for
  // other tensors.
  std::vector<std::int64_t> host_offset;
  std::int64_t host_bytes = 0;
};

// Makes kernels, chooses layouts and assigns offsets. A parameter that `parameter_layouts` names
// keeps the layout given there. Any other parameter gets the layout that is preferred by the first
// kernel that reads it.
//
// `reuse_delay` is the number of nodes that must pass before a freed buffer is reused, so that
// lanes do not wait for each other. It is halved until it costs at most max(128 MiB, 1/32 of the
// arena). A delay above kReuseDelay is for arenas of up to 512 MiB, whose operations leave space on
// a device for others.
//
// Throws std::runtime_error if a kernel cannot be made. The message names the layer, the operation
// and the backend.
CompiledGraph compile_graph(StepGraph graph, kernels::Backend backend,
                            const std::map<std::string, kernels::TensorDesc>& parameter_layouts = {},
                            int reuse_delay = 0);

// Assigns new offsets to the buffers of a graph whose layouts are chosen and whose kernels are
// made.
CompiledGraph assign_buffers(StepGraph graph, std::vector<kernels::TensorDesc> descs,
                             std::vector<kernels::Kernel> kernels, int reuse_delay = 0);

// Returns the layout of every parameter by its name, as the argument for compile_graph().
std::map<std::string, kernels::TensorDesc> parameter_layouts(const CompiledGraph& compiled);

}  // namespace convoy::app
