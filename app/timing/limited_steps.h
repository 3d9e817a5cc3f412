// Compiles steps that keep to a memory limit. To save memory, backward repeats some operations, or
// some tensors are copied to host memory until backward reads them. The measured times of the
// operations decide which ones.
#pragma once

#include <vector>

#include "app/compile/compiled_steps.h"
#include "app/model/network.h"
#include "comm/communicator.h"
#include "partition/memory/host_copies.h"

namespace convoy::app {

// Returns the milliseconds of every node of the training step. On a GPU the times are measured,
// which needs at most options.memory_limit bytes (0: the bytes of the step's activations), or more
// if the largest operation needs more. On a host the times are estimated.
std::vector<double> node_ms_of(const CompiledSteps& steps, const StepOptions& options,
                               const RankGroups& groups);

// Returns the rates of copies to and from host memory, and how much host memory the options allow.
// If a GPU may use host memory, the rates are measured with page-locked memory; else they are
// estimated.
partition::HostLink host_link_of(const StepOptions& options);

// Compiles the steps of a network that is not partitioned. A rank whose steps exceed its limit
// makes a plan to save memory (fit_memory.h). For these plans rank 0 times the operations, and all
// ranks time their copies to host memory at the same time. The plans use the slowest rates of
// copies of any rank. Collective over `ranks`, which are the ranks of groups.world.
CompiledSteps compile_within_limit(const Network& network, const StepOptions& options,
                                   const comm::Communicator& ranks, const RankGroups& groups);

}  // namespace convoy::app
