// Declares the operations that layers add to the step graph. Each operation is a struct that holds
// the problem of one kernel, which are the kernel's parameters. A pass over the graph changes an
// operation by changing its problem.
#pragma once

#include <string_view>

#include "kernels/device/kernel.h"

// Declares struct Name, an operation that runs kernels::kernel with a kernels::Problem. Use the
// macro in namespace convoy::app, before the layer whose Nodes contain Name. Tables and traces call
// the operation kName, or kRecomputedName if the backward pass runs it again.
#define CONVOY_NODE(Name, kernel, Problem) CONVOY_NODE_(Name, kernel, Problem, false)

// Declares an operation of the forward pass that the backward pass may run again to recompute an
// output that was dropped. A second run must give the same bits and change nothing else.
// app/graph/recomputed.cpp says how other operations are recomputed.
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
