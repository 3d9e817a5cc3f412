// Makes a task graph of a network's training step, for `convoy partition` and `convoy simulate`.
#pragma once

#include <string>
#include <string_view>

#include "partition/graph/task_graph.h"

namespace convoy::app {

inline constexpr std::string_view kModelGraph = "model:";

// Returns the task graph. `text` is model:NAME:BATCH or model:NAME:BATCH:SIZE, where images have
// SIZE x SIZE pixels. The default size is 224, or that of the file if NAME is a model file.
//
// The graph has one task for each node of the step and one for each update of parameters. Memory is
// counted as for SGD, with one momentum per parameter. Tasks that share parameters must be on the
// same device.
//
// The times are those of `profile`, which `bench step --layers --json` wrote on one rank. Without a
// profile they are estimated for the device of the file `topology`, in bf16 on GPUs and fp32 on
// CPUs. Throws UsageError if `text` has another form, or if `profile` and `topology` are both
// empty.
partition::TaskGraph model_task_graph(const std::string& text, const std::string& profile,
                                      const std::string& topology);

}  // namespace convoy::app
