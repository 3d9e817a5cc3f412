// The operations that layers add to the step graph. Each is a struct that holds the problem of one
// kernel, so a pass over the graph changes a node by editing an attribute of its problem.
#pragma once

#include <string_view>

#include "kernels/device/kernel.h"

// Declares struct Name, the operation that runs kernels::kernel on a kernels::Problem. Use it in
// convoy::app, above the layer that lists Name in its Nodes. Recomputed nodes have a name of their
// own.
#define CONVOY_NODE(Name, kernel, Problem)                                                  \
  struct Name {                                                                             \
    static constexpr std::string_view kName = #kernel;                                      \
    static constexpr std::string_view kRecomputedName = #kernel "_again";                   \
    kernels::Problem problem = {};                                                          \
    kernels::Kernel make(kernels::Backend backend, kernels::KernelRequest& request) const { \
      return kernels::kernel(backend, problem, request);                                    \
    }                                                                                       \
  }
