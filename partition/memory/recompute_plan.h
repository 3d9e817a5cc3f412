// Plans a training step within a memory limit: which tensors of forward are kept for backward, and
// which are dropped and computed again, so that the expected time is least.
//
// The step is a chain of blocks. The options of a block are a Pareto front of the sets of its
// tensors that can be kept (Zhao et al., "Rockmate", ICML 2023). Dynamic programming computes the
// best choice for every segment (range of consecutive blocks) and every amount of free memory.
// Either the segment uses one option of its first block, or it runs forward to a later block, keeps
// only that block's input, and runs the skipped blocks again later (Beaumont et al., "Optimal
// checkpointing for heterogeneous chains", 2019). If the plan needs less than the limit, more
// tensors are kept.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "partition/memory/host_copies.h"
#include "partition/memory/step_blocks.h"
#include "partition/memory/step_model.h"

namespace convoy::partition {

struct RecomputePlan {
  StepSchedule schedule;   // schedule of the plan, without copies
  double repeated_ms = 0;  // time of all repeated runs
  // live_peak() of the schedule, including the copies of tensors that are moved to host memory.
  std::int64_t live_bytes = 0;
};

class RecomputePlanner {
 public:
  // The tensors `away` are moved to host memory and copied back when they are needed, so they take
  // no device memory in between. StepPlanner (step_planner.h) decides later when these copies run.
  explicit RecomputePlanner(StepModel model, std::vector<int> away = {}, const HostLink& link = {});
  RecomputePlanner(const RecomputePlanner&) = delete;
  RecomputePlanner& operator=(const RecomputePlanner&) = delete;

  const StepModel& model() const { return model_; }
  // Returns the plan with the least expected time whose live bytes are within `limit`, or nothing
  // if none is found. The result is deterministic.
  std::optional<RecomputePlan> plan(std::int64_t limit) const;
  // Returns the plan with the fewest live bytes.
  RecomputePlan least() const;

 private:
  using Times = std::vector<float>;  // for each number of free units of memory, the time in milliseconds
  struct Choice;

  void fill_tables();
  void fill(int first, int last);
  template <typename Visit>
  void for_each_choice(int first, int last, Visit visit) const;
  std::pair<const Times*, const Times*> tables_of(const Choice& choice, int first, int last) const;
  const Times& table(int first, int last) const {
    return tables_[static_cast<std::size_t>(first * blocks_ + last)];
  }
  int units(std::int64_t bytes) const;
  double forward_ms(int first, int last, int end) const;
  std::int64_t forward_peak(int first, int end) const;
  std::int64_t entry_bytes(int last) const;
  Choice best_choice(int first, int last, int free) const;
  void append(int first, int last, int free, Available available, StepSchedule& to) const;
  void append_kept(int block, int last, const BlockOption& option, Available& available,
                   StepSchedule& to) const;
  void append_forward(int first, int end, int last, Available& available, StepSchedule& to) const;
  std::int64_t peak_of(const StepSchedule& schedule) const;
  RecomputePlan plan_in(int free) const;
  void keep_more(RecomputePlan& plan, std::int64_t limit) const;

  const StepModel model_;
  const std::vector<int> away_;
  const HostLink link_;
  const StepBlocks step_;
  const int blocks_;
  std::int64_t unit_ = 1;
  int most_ = 0;  // memory of a step that keeps every tensor, in units of unit_ bytes
  // For each segment, by its first and last block: the least times of repeated runs.
  std::vector<Times> tables_;
};

}  // namespace convoy::partition
