// How long the operations of a placed step take on the ranks that will run them: each rank alone on its host, and all side by
// side.
#pragma once

#include <cstdint>
#include <vector>

#include "app/compile/compiled_graph.h"
#include "comm/communicator.h"

namespace convoy::app {

struct StageTimes {              // of every node of the part; 0 and 1 for what communicates
  std::vector<double> alone_ms;  // on a processor of its own, the host's other ranks waiting
  std::vector<double> slowdown;  // a processor works that many times as long beside them
};

// Collective over `world`. Alone and side by side take turns, round for round, so that whatever else goes on on the host
// disturbs both alike; each in `arena_bytes`, as much memory as the step will have.
StageTimes time_stage(const CompiledGraph& part, kernels::Backend backend,
                      const kernels::StepControl* control, std::int64_t arena_bytes, int rounds,
                      const comm::Communicator& world);

}  // namespace convoy::app
