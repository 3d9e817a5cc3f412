// Compiles steps that keep to a memory limit, by measured times of their operations.
#pragma once

#include <vector>

#include "app/compile/compiled_steps.h"
#include "app/model/network.h"
#include "comm/communicator.h"
#include "partition/memory/host_copies.h"

namespace convoy::app {

// Returns the milliseconds of every node of the training step: measured on a GPU, else estimated.
// Measuring needs at most options.memory_limit bytes (0: as many as the step's activations), or
// what the largest operation needs.
std::vector<double> node_ms_of(const CompiledSteps& steps, const StepOptions& options,
                               const RankGroups& groups);

// Returns the way to the host's memory: measured on a GPU with page-locked memory, else estimated.
partition::HostLink host_link_of(const StepOptions& options);

// Compiles the steps of an undivided network. If those of any rank exceed its limit, rank 0 times
// the operations, and all ranks time their links at once. Every rank that exceeds its limit plans
// with these times and the slowest link (fit_memory.h). Collective over `ranks`, the ranks of
// groups.world.
CompiledSteps compile_within_limit(const Network& network, const StepOptions& options,
                                   const comm::Communicator& ranks, const RankGroups& groups);

}  // namespace convoy::app
