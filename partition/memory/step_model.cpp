#include "partition/memory/step_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <stdexcept>

namespace convoy::partition {

using Kind = StepRun::Kind;

StepSchedule single_runs(const StepModel& model) {
  StepSchedule schedule;
  for (int i = 0; i < std::ssize(model.operations); ++i) schedule.push_back({i, model.operations[i].outputs});
  return schedule;
}

double repeated_ms(const StepModel& model, const StepSchedule& schedule) {
  std::vector<bool> ran(model.operations.size(), false);
  double ms = 0;
  for (const StepRun& run : schedule) {
    if (!run.computes()) continue;
    if (ran[run.operation]) ms += model.operations[run.operation].ms;
    ran[run.operation] = true;
  }
  return ms;
}

int BufferLives::add(std::int64_t bytes, int first) {
  const int number = static_cast<int>(std::ssize(lives_));
  lives_.push_back({bytes, first, first, number});
  return number;
}

std::vector<std::int64_t> BufferLives::live() {
  for (const Share& share : shares_) {
    Life &output = lives_[share.output], &buffer = lives_[lives_[share.input].buffer];
    const bool free = buffer.last == share.run && output.first == share.run && output.buffer == share.output;
    if (!free || buffer.bytes != output.bytes) continue;
    output.buffer = lives_[share.input].buffer;
    buffer.last = output.last;
  }
  std::vector<std::int64_t> change(workspace_.size() + 1, 0);
  for (int i = 0; i < std::ssize(lives_); ++i) {
    if (lives_[i].buffer != i) continue;
    change[lives_[i].first] += padded(lives_[i].bytes);
    change[lives_[i].last + 1] -= padded(lives_[i].bytes);
  }
  std::vector<std::int64_t> bytes;
  bytes.reserve(workspace_.size());
  std::int64_t buffers = 0;
  for (int run = 0; run < std::ssize(workspace_); ++run) {
    buffers += change[run];
    bytes.push_back(buffers + padded(workspace_[run]));
  }
  return bytes;
}

namespace {

// Checks that the slices of one tensor are written in their order.
class WrittenSlices {
 public:
  explicit WrittenSlices(const StepModel& model) : count_(model.tensor_bytes.size(), 0) {
    bool any = false;
    for (const StepOperation& operation : model.operations)
      for (const int tensor : operation.outputs) any = ++count_[tensor] > 1 || any;
    if (!any) return;
    written_.assign(count_.size(), 0);
    for (int i = 0; i < std::ssize(model.operations); ++i)
      for (const int tensor : model.operations[i].outputs)
        if (count_[tensor] > 1) place_.emplace(std::pair(i, tensor), written_[tensor]++);
    std::ranges::fill(written_, 0);
  }
  void write(int tensor, int operation, bool updates) {
    if (count_[tensor] < 2) return;
    const int place = place_.at({operation, tensor});
    // Once all slices of the tensor are written, they may be updated again in any order.
    if (updates && written_[tensor] == count_[tensor]) return;
    if (updates && place != written_[tensor])
      throw std::logic_error(fmt::format("operation {} writes tensor {} after a gap", operation, tensor));
    written_[tensor] = place + 1;
  }

 private:
  // For each tensor: the number of its slices (operations that write it), and how many are written.
  std::vector<int> count_, written_;
  // For an operation and a tensor: the position of the operation among those that write the tensor.
  std::map<std::pair<int, int>, int> place_;
};

}  // namespace

std::vector<std::int64_t> live_bytes(const StepModel& model, const StepSchedule& schedule) {
  BufferLives lives(static_cast<int>(schedule.size()), model.alignment);
  // For each tensor, the buffer of its newest content.
  std::vector<int> newest(model.tensor_bytes.size(), -1);
  std::vector<bool> ran(model.operations.size(), false);
  std::vector<std::pair<int, int>> written;  // tensors that the current run writes, and their buffers
  WrittenSlices slices(model);
  for (int at = 0; at < std::ssize(schedule); ++at) {
    const auto read = [&](int tensor) {
      if (newest[tensor] < 0)
        throw std::logic_error(fmt::format("run {} reads tensor {}, which is not in memory", at, tensor));
      lives.use(newest[tensor], at);
    };
    if (!schedule[at].computes()) {
      const int tensor = schedule[at].tensor();
      if (schedule[at].kind == Kind::copy_back)
        newest[tensor] = lives.add(model.tensor_bytes[tensor], at);
      else
        read(tensor);
      if (schedule[at].kind == Kind::copied_out) newest[tensor] = -1;
      continue;
    }
    const StepOperation& operation = model.operations[schedule[at].operation];
    const std::vector<int>& outputs = schedule[at].outputs;
    for (const int tensor : operation.inputs)
      if (model.tensor_bytes[tensor] > 0) read(tensor);
    written.clear();
    for (const int tensor : ran[schedule[at].operation] ? operation.again : operation.outputs) {
      if (model.tensor_bytes[tensor] == 0) continue;
      const bool updated =
          newest[tensor] >= 0 && std::ranges::find(operation.inputs, tensor) != operation.inputs.end();
      slices.write(tensor, schedule[at].operation, updated);
      if (updated) continue;  // the operation updates its input in place
      written.emplace_back(tensor, lives.add(model.tensor_bytes[tensor], at));
    }
    const auto new_buffer = [&](int tensor) {
      const auto found = std::ranges::find(written, tensor, &std::pair<int, int>::first);
      return found == written.end() ? -1 : found->second;
    };
    for (const auto& [input, output] : operation.in_place)
      if (model.tensor_bytes[input] > 0 && new_buffer(output) >= 0)
        lives.may_share(newest[input], new_buffer(output), at);
    for (const auto& [tensor, buffer] : written)
      if (std::ranges::find(outputs, tensor) != outputs.end()) newest[tensor] = buffer;
    lives.add_workspace(operation.workspace, at);
    ran[schedule[at].operation] = true;
  }
  return lives.live();
}

std::int64_t live_peak(const StepModel& model, const StepSchedule& schedule) {
  return std::ranges::max(live_bytes(model, schedule));
}

int neediest_run(const StepModel& model, const StepSchedule& schedule) {
  const std::vector<std::int64_t> live = live_bytes(model, schedule);
  const std::int64_t near = std::ranges::max(live) / 100 * 98;
  int neediest = 0;
  std::int64_t most = -1;
  for (int at = 0; at < std::ssize(schedule); ++at) {
    if (!schedule[at].computes()) continue;
    const StepOperation& operation = model.operations[schedule[at].operation];
    std::int64_t own = operation.workspace;
    for (const auto* tensors : {&operation.inputs, &operation.outputs})
      for (const int tensor : *tensors) own += model.tensor_bytes[tensor];
    if (live[at] >= near && own > most) neediest = at, most = own;
  }
  return neediest;
}

void remove_unread(const StepModel& model, StepSchedule& schedule) {
  std::vector<int> runs(model.operations.size(), 0);
  for (const StepRun& run : schedule) ++runs[run.operation];
  // For each tensor, whether a later run reads what the current run writes.
  std::vector<bool> wanted(model.tensor_bytes.size(), false);
  for (StepRun& run : schedule | std::views::reverse) {
    const bool repeated = --runs[run.operation] > 0;
    if (repeated) {
      std::erase_if(run.outputs, [&](int tensor) { return !wanted[tensor]; });
      if (run.outputs.empty()) continue;
    }
    for (const int tensor : run.outputs) wanted[tensor] = false;
    for (const int tensor : model.operations[run.operation].inputs) wanted[tensor] = true;
  }
  std::vector<bool> ran(model.operations.size(), false);
  std::erase_if(schedule, [&](const StepRun& run) {
    const bool repeated = ran[run.operation];
    ran[run.operation] = true;
    return repeated && run.outputs.empty();
  });
}

}  // namespace convoy::partition
