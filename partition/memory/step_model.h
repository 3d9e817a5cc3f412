// A training step as its memory planner sees it: the operations in their order, and the bytes of
// their tensors. A schedule of the step may repeat operations of forward during backward.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace convoy::partition {

struct StepOperation {
  double ms = 0;               // time of one run
  std::int64_t workspace = 0;  // bytes of scratch memory during a run
  std::vector<int> inputs, outputs;
  std::vector<std::pair<int, int>> in_place;  // pairs (input, output) that may share a buffer
  // The outputs that the operation writes if it runs again. Empty if it can run only once.
  std::vector<int> again;
  bool backward = false;
  // Whether the operation must be in the same block (step_blocks.h) as the one before it, because
  // both compute slices of the same tensors.
  bool joined = false;
};

struct StepModel {
  std::vector<StepOperation> operations;  // operations of forward, then of backward
  // Bytes of each tensor; 0 for tensors outside the memory that the planner manages.
  std::vector<std::int64_t> tensor_bytes;
  // For each tensor, whether it may be moved to host memory. Empty if none may.
  std::vector<char> copyable;
  // For each tensor, its family. Slices of one tensor form a family, which is kept or dropped as a
  // whole. Empty if no tensors are slices.
  std::vector<int> family;
  std::int64_t alignment = 1;  // buffer sizes are rounded up to multiples of it
};

// One element of a schedule: a run of an operation, or the begin or end of a copy of a tensor. A
// run may list only some outputs of its operation in `outputs`. Later runs read the listed outputs
// from this run, and the other outputs from an earlier run of the operation.
struct StepRun {
  enum class Kind : std::uint8_t {
    compute,
    copy_out,    // a copy of a tensor's newest content begins
    copied_out,  // the copy has ended, and the content is only in host memory
    copy_back    // a copy back into a new buffer begins
  };
  int operation = 0;         // index of the operation that runs; not used by copies
  std::vector<int> outputs;  // outputs that the run writes, or the one tensor of a copy
  Kind kind = Kind::compute;
  bool computes() const { return kind == Kind::compute; }
  int tensor() const { return outputs[0]; }
  bool operator==(const StepRun&) const = default;
};
using StepSchedule = std::vector<StepRun>;

// Returns the schedule in which every operation runs once.
StepSchedule single_runs(const StepModel& model);

// Returns the milliseconds of all repeated runs, that is, of all runs of an operation but the
// first. Copies do not count.
double repeated_ms(const StepModel& model, const StepSchedule& schedule);

// Returns for each run of the schedule how many bytes are live during the run: all buffers in use
// and the workspace. An output gets its own buffer, which is live from the run that writes it to
// the last run that reads it. There are two exceptions:
//   - An operation that updates one of its inputs writes into the buffer of this input.
//   - In a pair of StepOperation::in_place, the output takes the buffer of the input if both have
//     the same size and no later run reads the input.
// If a tensor is copied to host memory, its buffer is live until the copy has ended. A copy back
// begins with a new buffer.
//
// Throws std::logic_error if a run reads a tensor that is not in memory, or if it writes a slice of
// a tensor before an earlier slice was written.
std::vector<std::int64_t> live_bytes(const StepModel& model, const StepSchedule& schedule);
// Returns the largest value of live_bytes().
std::int64_t live_peak(const StepModel& model, const StepSchedule& schedule);

// Returns the index of a run that needs much memory. Among the runs with at least 98 % of the peak,
// it is the one whose own tensors and workspace are largest.
int neediest_run(const StepModel& model, const StepSchedule& schedule);

// Removes from a schedule without copies those repeated runs, and those outputs of repeated runs,
// that no later run reads.
void remove_unread(const StepModel& model, StepSchedule& schedule);

// Computes the live bytes during each run of a list from the lifetimes of buffers.
class BufferLives {
 public:
  BufferLives(int runs, std::int64_t alignment)
      : alignment_(alignment), workspace_(static_cast<std::size_t>(runs), 0) {}
  int add(std::int64_t bytes, int first);  // returns the buffer's number
  void use(int buffer, int run) { lives_[static_cast<std::size_t>(buffer)].last = run; }
  void may_share(int input, int output, int run) { shares_.push_back({input, output, run}); }
  void add_workspace(std::int64_t bytes, int run) { workspace_[static_cast<std::size_t>(run)] += bytes; }
  std::vector<std::int64_t> live();  // returns the live bytes during each run; must be the last call

 private:
  struct Life {
    std::int64_t bytes;
    int first, last, buffer;
  };
  struct Share {
    int input, output, run;
  };
  std::int64_t padded(std::int64_t bytes) const { return (bytes + alignment_ - 1) / alignment_ * alignment_; }

  std::int64_t alignment_;
  std::vector<std::int64_t> workspace_;  // bytes of scratch memory during each run
  std::vector<Life> lives_;
  std::vector<Share> shares_;
};

}  // namespace convoy::partition
