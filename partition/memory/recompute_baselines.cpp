#include "partition/memory/recompute_baselines.h"

#include <algorithm>

namespace convoy::partition {

StepSchedule run_again(const StepModel& model, const std::vector<int>& operations) {
  // For each dropped tensor, the operation that writes it again.
  std::vector<int> maker(model.tensor_bytes.size(), -1);
  for (const int operation : operations)
    for (const int tensor : model.operations[operation].again) maker[tensor] = operation;
  StepSchedule schedule;
  for (const StepRun& run : single_runs(model)) {
    if (model.operations[run.operation].backward)
      for (const int tensor : model.operations[run.operation].inputs) {
        const int operation = maker[tensor];
        if (operation < 0) continue;
        schedule.push_back({operation, model.operations[operation].again});
        for (const int output : model.operations[operation].again) maker[output] = -1;
      }
    schedule.push_back(run);
  }
  remove_unread(model, schedule);
  return schedule;
}

StepSchedule checkpoint_blocks(const StepModel& model, const StepBlocks& blocks, int length) {
  const auto& all = blocks.blocks();
  const int count = static_cast<int>(std::ssize(all));
  // For each operation of backward, its segment: a sequence of `length` blocks.
  std::vector<int> segment_of(model.operations.size(), -1);
  for (int block = 0; block < count; ++block)
    for (int i = all[block].backward_first; i < all[block].backward_end; ++i) segment_of[i] = block / length;
  StepSchedule schedule;
  int segment = -1;
  for (const StepRun& run : single_runs(model)) {
    if (const int next = segment_of[run.operation]; next >= 0 && next != segment) {
      segment = next;
      const int last = std::min((segment + 1) * length, count) - 1;
      for (int i = all[segment * length].first; i < all[last].end; ++i)
        if (!model.operations[i].again.empty()) schedule.push_back({i, model.operations[i].again});
    }
    schedule.push_back(run);
  }
  remove_unread(model, schedule);
  return schedule;
}

}  // namespace convoy::partition
