// A training step for its memory planner: the operations in the order in which they run, and the
// bytes of their tensors. A schedule repeats some operations of forward in backward.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace convoy::partition {

struct StepOperation {
  double ms = 0;               // time of one run
  std::int64_t workspace = 0;  // bytes of scratch memory during a run
  std::vector<int> inputs, outputs;
  std::vector<std::pair<int, int>> in_place;  // (input, output) tensors that may share a buffer
  // Outputs that a repeated run writes; empty if the operation runs only once.
  std::vector<int> again;
  bool backward = false;
  // Whether it must be in the same block (step_blocks.h) as the operation before it, because they
  // compute slices of the same tensors.
  bool joined = false;
};

struct StepModel {
  std::vector<StepOperation> operations;  // operations of forward, then of backward
  // Bytes of each tensor; 0 if it is not in the step's memory.
  std::vector<std::int64_t> tensor_bytes;
  // One element per tensor: whether it may wait in host memory; empty if none may.
  std::vector<char> copyable;
  // One element per tensor: its family. Slices of the same tensor have the same family and are kept
  // or dropped together. Empty if no tensors are slices.
  std::vector<int> family;
  std::int64_t alignment = 1;  // sizes of buffers are rounded up to multiples of it
};

// A run of an operation, or a part of a copy of a tensor to host memory and back. A run may list
// only some outputs of its operation in `outputs`. Later runs read these as this run wrote them,
// and the other outputs as an earlier run wrote them.
struct StepRun {
  enum class Kind : std::uint8_t {
    compute,
    copy_out,    // a copy of a tensor's newest content begins
    copied_out,  // the copy has ended, and the content is only in host memory
    copy_back    // a copy back into a new buffer begins
  };
  int operation = 0;         // the operation that runs; copies do not use this
  std::vector<int> outputs;  // the outputs of a run, or the tensor of a copy
  Kind kind = Kind::compute;
  bool computes() const { return kind == Kind::compute; }
  int tensor() const { return outputs[0]; }
  bool operator==(const StepRun&) const = default;
};
using StepSchedule = std::vector<StepRun>;

// Returns the schedule in which every operation runs once.
StepSchedule single_runs(const StepModel& model);

// Returns the milliseconds that repeated runs take: all runs of an operation but the first. Copies
// do not count.
double repeated_ms(const StepModel& model, const StepSchedule& schedule);

// Returns one number for each run of the schedule: the bytes of the buffers that are live during
// that run, and of its workspace. An output gets a buffer of its own, which is live from the run
// that writes it to the last run that reads it. There are two exceptions:
//   - An operation that updates one of its inputs writes into the buffer of that input.
//   - The output of a pair in StepOperation::in_place takes over the buffer of the input if both
//     have the same size and no later run reads the input.
// The buffer of a tensor that is copied to host memory is live until that copy has ended. The copy
// back begins with a new buffer.
// Throws std::logic_error if a run reads what is not in memory, or writes a slice of a tensor that
// lacks an earlier slice.
std::vector<std::int64_t> live_bytes(const StepModel& model, const StepSchedule& schedule);
// Returns the largest of live_bytes.
std::int64_t live_peak(const StepModel& model, const StepSchedule& schedule);

// Returns the index of a run that needs much memory. Among the runs at which at least 98 % of the
// peak is live, it is the one whose own tensors and workspace are largest.
int neediest_run(const StepModel& model, const StepSchedule& schedule);

// Removes what nothing reads from a schedule without copies: repeated runs, and single outputs of
// repeated runs.
void remove_unread(const StepModel& model, StepSchedule& schedule);

// Computes the live bytes of a list of runs from the lifetimes of their buffers.
class BufferLives {
 public:
  BufferLives(int runs, std::int64_t alignment)
      : alignment_(alignment), workspace_(static_cast<std::size_t>(runs), 0) {}
  int add(std::int64_t bytes, int first);  // returns the buffer's number
  void use(int buffer, int run) { lives_[static_cast<std::size_t>(buffer)].last = run; }
  void may_share(int input, int output, int run) { shares_.push_back({input, output, run}); }
  void add_workspace(std::int64_t bytes, int run) { workspace_[static_cast<std::size_t>(run)] += bytes; }
  std::vector<std::int64_t> live();  // returns the live bytes during each run; call it last

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
