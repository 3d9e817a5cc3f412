// Binds compiled steps to a session's memory and so makes the session's programs. Every kernel
// becomes an instruction with its addresses. The builder adds sums of gradient buckets
// (comm/buckets.h) and other sums over the ranks, transfers between stages, and the optimizer.
//
// A session may have several members (trainings that run together):
//   - On a device, a node becomes one instruction for all members if its kernel can do that.
//     Otherwise it becomes one instruction for each member, and these follow each other.
//   - On a host, the program runs the whole step of one member after the other, so that the data of
//     a member stay in the caches.
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

// The communication of a rank's programs with other ranks. It is prepared once, and the programs
// refer to it, so it must outlive them.
struct StepCommunication {
  std::unique_ptr<comm::GradientBuckets> buckets;  // null with one replica (RankGroups)
  std::unique_ptr<Transfers> transfers;            // null without --partition
  // The sums of statistics and metrics over the ranks.
  std::vector<std::unique_ptr<comm::PreparedOperation>> all_reduces;
  // The sum of a training step's metrics over the ranks, which a GPU starts before backward ends.
  // It is null if the metrics are summed after the update.
  std::unique_ptr<comm::PreparedOperation> early_metrics;
  double exposed_ms = 0;  // milliseconds that this rank has waited for others
};

struct StepPrograms {
  Program train;
  // Forward and backward of a part of a batch that is not the last part. The program adds the
  // gradients to a sum over the parts. It is empty unless StepOptions::accumulate is set.
  Program train_part;
  Program evaluate;
  // The largest number of lanes for computing that one of the programs may have.
  int lanes = 1;
};

class ProgramBuilder {
 public:
  // All arguments except `options` and `steps` must outlive the programs.
  ProgramBuilder(const CompiledSteps& steps, const StepOptions& options, const RankGroups& groups,
                 const ModelMemory& memory, StepCommunication& communication);

  // Makes the programs. Collective over the ranks: all ranks prepare all exchanges of the programs
  // in the same order.
  void build(StepPrograms& programs);

  // Returns a launch that updates the bf16 copies of the parameters. It is empty if there are no
  // copies.
  kernels::Launch copy_parameters() const;

 private:
  // Calls append() once for all members on a device, and once per member on a host.
  template <typename Append>
  void for_members(const Append& append);
  void append_train(Program& program);
  void append_train_part(Program& program);
  void bind(Program& program, const CompiledGraph& compiled, bool last_part);
  // Appends the instructions of a kernel for the members that for_members() has chosen. `one`
  // describes the instruction for member 0 and has no launch yet. `inputs`, `outputs` and
  // `workspace` are the addresses of member 0.
  void append_kernel(Program& program, Instruction one, const kernels::Kernel& kernel,
                     const std::vector<void*>& inputs, const std::vector<void*>& outputs,
                     void* workspace = nullptr);
  Instruction of_member(const Instruction& one, int member) const;
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
  void append_clearing(Program& program);
  void append_update(Program& program);
  void append_clipping(Program& program);
  void append_no_update(Program& program);
  void append_accumulation(Program& program, const MemoryRange& slice, bool last_part);
  void append_statistics_average(Program& program);
  float* gradient_scale() const { return &memory_.control()->gradient_scale; }
  bool partitioned() const { return communication_.transfers != nullptr; }
  // Returns the memory range of the parameters that are updated together in a flat buffer.
  MemoryRange flat(const void* buffer, std::int64_t element_bytes = sizeof(float)) const {
    return {buffer, memory_.gradient_elements() * element_bytes};
  }
  MemoryRange metrics_range() const {
    return {memory_.metrics(), ModelMemory::kMetrics * std::int64_t{sizeof(double)}};
  }

  const CompiledSteps& steps_;
  const StepOptions& options_;
  const RankGroups& groups_;
  const ModelMemory& memory_;
  StepCommunication& communication_;
  // Instructions are being appended for `members_` members from number `first_member_` on.
  int first_member_ = 0, members_ = 1;
};

}  // namespace convoy::app
