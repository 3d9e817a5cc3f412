// Binds compiled steps to a session's memory: every kernel becomes an instruction at its addresses, with gradient
// buckets, sums over the ranks, transfers between stages and the optimizer where they belong.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/compile/compiled_steps.h"
#include "app/execute/model_memory.h"
#include "app/execute/program.h"
#include "app/execute/transfers.h"
#include "comm/buckets.h"
#include "comm/collectives.h"

namespace convoy::app {

// What the programs of a rank exchange with other ranks. They refer to it, so it must outlive them.
struct StepCommunication {
  std::unique_ptr<comm::GradientBuckets> buckets;                     // null with one replica
  std::unique_ptr<Transfers> transfers;                               // null without partition
  std::vector<std::unique_ptr<comm::PreparedOperation>> all_reduces;  // of statistics and of the metrics
  // The sum of a training step's metrics, which a GPU starts before backward ends; null where they are summed last.
  std::unique_ptr<comm::PreparedOperation> early_metrics;
  double exposed_ms = 0;  // waited for other ranks since the run began
};

struct StepPrograms {
  Program train;
  // Forward and backward of a part of a batch, which adds its gradients up; with StepOptions::accumulate only.
  Program train_part;
  Program evaluate;
};

class ProgramBuilder {
 public:
  // All of these must outlive the programs but `options` and `steps`. `control` is where the kernels read it.
  ProgramBuilder(const CompiledSteps& steps, const StepOptions& options, const RankGroups& groups,
                 const ModelMemory& memory, kernels::StepControl* control, StepCommunication& communication);

  // Collective: prepares every exchange of the programs in one order on all ranks.
  StepPrograms build();

  // The launch that makes the bf16 copies of the parameters anew; empty if there are none.
  kernels::Launch copy_parameters() const;

 private:
  Program bind(const CompiledGraph& compiled, bool last_part);
  void append_node(Program& program, const CompiledGraph& compiled, std::size_t node);
  void append_transfer(Program& program, const CompiledGraph& compiled, const Node& node);
  void append_finished_buckets(Program& program, const CompiledGraph& compiled, std::size_t node);
  void append_all_reduce(Program& program, comm::Collectives& ranks, const std::string& layer, double* data,
                         std::int64_t count);
  void append_communication(Program& program, Instruction instruction,
                            std::function<void(kernels::Stream)> action);
  void append_early_metrics(Program& program, const CompiledGraph& compiled, std::size_t node);
  void append_metrics(Program& program, bool summed_early);
  void append_no_loss(Program& program);
  void append_update(Program& program);
  void append_clipping(Program& program);
  void append_no_update(Program& program);
  void append_accumulation(Program& program, const MemoryRange& slice, bool last_part);
  void append_statistics_average(Program& program);
  float* gradient_scale() const { return &control_->gradient_scale; }
  bool partitioned() const { return communication_.transfers != nullptr; }
  MemoryRange flat(const void* buffer, std::int64_t element_bytes = sizeof(float)) const {
    return {buffer, memory_.flat_elements() * element_bytes};
  }
  MemoryRange metrics_range() const {
    return {memory_.metrics(), ModelMemory::kMetrics * std::int64_t{sizeof(double)}};
  }

  const CompiledSteps& steps_;
  const StepOptions& options_;
  const RankGroups& groups_;
  const ModelMemory& memory_;
  kernels::StepControl* const control_;
  StepCommunication& communication_;
};

}  // namespace convoy::app
