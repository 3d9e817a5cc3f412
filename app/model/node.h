// Declares the operations that layers add to the step graph. Each operation is a struct that holds
// the problem (the parameters) of one kernel. So a pass over the graph changes a node by changing
// its problem.
#pragma once

#include <string_view>

#include "kernels/device/kernel.h"

// Declares struct Name, the operation that runs kernels::kernel with a kernels::Problem. Use the
// macro in convoy::app, before the layer that lists Name in its Nodes. Tables and traces call the
// operation kName, or kRecomputedName if backward runs it again.
#define CONVOY_NODE(Name, kernel, Problem) CONVOY_NODE_(Name, kernel, Problem, false)

// Declares an operation of forward that backward may run again as it is, if its output was dropped:
// a second run gives the same bits and changes nothing else. app/graph/recomputed.cpp says how
// other operations of forward run again.
#define CONVOY_REPEATABLE_NODE(Name, kernel, Problem) CONVOY_NODE_(Name, kernel, Problem, true)

#define CONVOY_NODE_(Name, kernel, Problem, repeatable)                                     \
  struct Name {                                                                             \
    static constexpr std::string_view kName = #kernel;                                      \
    static constexpr std::string_view kRecomputedName = #kernel "_again";                   \
    static constexpr bool kRepeatable = repeatable;                                         \
    kernels::Problem problem = {};                                                          \
    kernels::Kernel make(kernels::Backend backend, kernels::KernelRequest& request) const { \
      return kernels::kernel(backend, problem, request);                                    \
    }                                                                                       \
  }
