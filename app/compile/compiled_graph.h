// A compiled graph is a step graph with a kernel for every node, a layout for every tensor, and an
// offset for every buffer that lives inside the step. It holds offsets and no addresses, so several
// sessions can use it, each with its own memory. Comments below mention lanes: these are sequences
// of nodes that run at the same time (app/execute/lane_plan.h).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/graph/step_graph.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

// The number of nodes that must pass before a freed buffer is reused (see compile_graph()). The
// first number is for a fixed number of lanes, the second for --lanes auto.
inline constexpr int kReuseDelay = 4, kLongReuseDelay = 16;

struct CompiledGraph {
  StepGraph graph;
  std::vector<kernels::TensorDesc> descs;  // for each TensorId: type, shape and layout
  // For each node: its kernel, which is empty for all_reduce and transfers.
  std::vector<kernels::Kernel> kernels;
  // For each TensorId: the offset of the tensor in the memory for activations, in bytes; -1 for a
  // tensor that is elsewhere.
  std::vector<std::int64_t> tensor_offset;
  // For each node: the offset of its workspace in the memory for activations, in bytes; -1 if it
  // has no workspace.
  std::vector<std::int64_t> workspace_offset;
  std::int64_t activation_bytes = 0;
  // For each TensorId that is copied to host memory: the offset in the memory for such copies, in
  // bytes; -1 for other tensors.
  std::vector<std::int64_t> host_offset;
  std::int64_t host_bytes = 0;
};

// Makes kernels, chooses layouts and assigns offsets. A parameter that `parameter_layouts` names
// keeps the layout given there. Any other parameter gets the layout that is preferred by the first
// kernel that reads it.
//
// `reuse_delay` is the number of nodes that must pass before a freed buffer is reused:
//   - A node that reuses a buffer must wait for the last reader of the buffer. With a delay, lanes
//     wait less for each other.
//   - The delay is halved until it makes the arena larger by at most max(128 MiB, 1/32 of the
//     arena).
//   - In arenas above 512 MiB it is at most kReuseDelay, because their large operations can hardly
//     run at the same time.
//
// Throws std::runtime_error if a kernel cannot be made. The message names the layer, the operation
// and the backend.
CompiledGraph compile_graph(StepGraph graph, kernels::Backend backend,
                            const std::map<std::string, kernels::TensorDesc>& parameter_layouts = {},
                            int reuse_delay = 0);

// Makes a compiled graph from a graph that already has layouts (`descs`) and kernels. Only assigns
// offsets to its buffers.
CompiledGraph assign_buffers(StepGraph graph, std::vector<kernels::TensorDesc> descs,
                             std::vector<kernels::Kernel> kernels, int reuse_delay = 0);

// Returns the pairs (input, output) of the node's tensors in which the output may overwrite the
// input. An input that the node reads in two places is left out, since the kernel may still need
// its values for the other place.
std::vector<std::pair<TensorId, TensorId>> overwritten_inputs(const Node& node,
                                                              const kernels::Kernel& kernel);

// Returns the layout of every parameter by its name, as the argument for compile_graph().
std::map<std::string, kernels::TensorDesc> parameter_layouts(const CompiledGraph& compiled);

}  // namespace convoy::app
