// Makes a session that runs whole steps of a network.
#pragma once

#include <utility>

#include "app/compile/fit_memory.h"
#include "app/execute/session.h"

namespace convoy::app {

// Compiles the steps of a network. If they need more memory than options.memory_limit, changes the
// training step to need less, by estimated times of the operations.
inline CompiledSteps whole_steps(const Network& network, const StepOptions& options,
                                 comm::Collectives& ranks) {
  CompiledSteps steps = compile_steps(network, options, {&ranks, &ranks, nullptr});
  if (exceeds_limit(steps, options, ranks))
    fit_into_limit(steps, options, ranks, estimated_node_ms(*steps.train, options), estimated_link(options));
  return steps;
}

inline Session whole_session(const Network& network, const StepOptions& options, comm::Collectives& ranks) {
  return {whole_steps(network, options, ranks), options, {&ranks, &ranks, nullptr}};
}

}  // namespace convoy::app
