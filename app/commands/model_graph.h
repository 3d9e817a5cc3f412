// The training step of a network as a task graph, for `convoy partition` and `convoy simulate`.
#pragma once

#include <string>
#include <string_view>

#include "partition/graph/task_graph.h"

namespace convoy::app {

inline constexpr std::string_view kModelGraph = "model:";

// `text` is model:NAME:BATCH or model:NAME:BATCH:SIZE, images of SIZE pixels a side (224, or those
// of NAME if it is a file). One task a node of the step and one an update, with SGD's momentum
// resident; what shares parameters is colocated. Times are those of `profile` (bench step --layers
// --json of one rank); without one, an estimate for the device of the `topology`'s file, in bf16 on
// GPUs and fp32 on CPUs. Throws UsageError for a text of another form, and if neither file is
// given.
partition::TaskGraph model_task_graph(const std::string& text, const std::string& profile,
                                      const std::string& topology);

}  // namespace convoy::app
