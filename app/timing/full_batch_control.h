// Holds the control values of a step with a full batch, in memory that kernels can read. Code that
// times single operations passes these values to the kernels.
#pragma once

#include "app/compile/compiled_steps.h"
#include "kernels/device/arena.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {

class FullBatchControl {
 public:
  FullBatchControl(const CompiledSteps& whole, const StepOptions& options, const RankGroups& groups)
      : memory_(options.backend, sizeof(kernels::StepControl)) {
    const StepGraph& graph = whole.train->graph;
    kernels::StepControl control;
    control.seed = options.members[0].seed;
    control.valid = static_cast<std::int32_t>(graph.tensors[static_cast<std::size_t>(graph.labels)].shape[0]);
    control.global_valid = control.valid * groups.replicas->size();
    control.learning_rate = 1e-3f;
    kernels::copy_in(options.backend, memory_.data(), &control, sizeof control);
  }
  const kernels::StepControl* get() const {
    return reinterpret_cast<const kernels::StepControl*>(memory_.data());
  }

 private:
  kernels::Arena memory_;
};

}  // namespace convoy::app
