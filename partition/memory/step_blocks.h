// Divides a training step into a chain of blocks for its memory planner, and finds for every block
// what can be kept of it until its backward, and what that costs.
// Forward is cut at tensors that all later operations depend on, such as the outputs of residual
// blocks; blocks with many tensors (dense blocks, long skips) also where several tensors cross.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/memory/step_model.h"

namespace convoy::partition {

// A choice of what a block keeps. All bytes are in addition to the block's input.
struct BlockOption {
  std::vector<int> kept;           // tensors, without those that go on to later blocks
  std::int64_t kept_bytes = 0;     // with those that go on to later blocks
  std::int64_t forward_peak = 0;   // while the block runs forward
  std::int64_t backward_peak = 0;  // while it runs backward, with the gradients that are live then
  double forward_ms = 0;           // of running forward once more, as far as needed
  double repeated_ms = 0;          // of what backward runs again
};

struct StepBlock {
  int first = 0, end = 0;                    // of forward
  int backward_first = 0, backward_end = 0;  // of backward
  std::vector<int> outputs;                  // tensors that later blocks read, also past the next one
  std::vector<int> own_outputs;              // of these, the ones that this block's backward needs
  std::int64_t gradient_bytes = 0;           // live when its backward begins
  double forward_ms = 0;                     // of making `outputs` again from the block's input
  std::int64_t forward_peak = 0;             // while that runs
  std::vector<BlockOption> options;          // none is worse than another in everything
  BlockOption late;  // keeps nothing, and backward begins without running forward before
};

// The contents that are in memory, by tensor.
using Available = std::vector<char>;

class StepBlocks {
 public:
  // `model` must outlive the blocks. Throws std::invalid_argument if an operation of forward comes
  // after one of backward.
  explicit StepBlocks(const StepModel& model);

  const std::vector<StepBlock>& blocks() const { return blocks_; }
  // Bytes of what forward leaves for backward and cannot run again.
  std::int64_t fixed_bytes() const { return fixed_bytes_; }
  // Bytes of the tensors between block `at` - 1 and block `at`, without those between `base` - 1
  // and `base`.
  std::int64_t bytes_between(int at, int base) const;
  const std::vector<int>& between(int at) const { return between_[static_cast<std::size_t>(at)]; }

  // Append the runs that make `wanted`, or run the block's backward, from what is available; and
  // note what then is.
  void append_forward(int block, const std::vector<int>& wanted, Available& available,
                      StepSchedule& to) const;
  void append_backward(int block, Available& available, StepSchedule& to) const;

 private:
  void find_tensors();
  void cut();
  std::vector<int> crossing(int position) const;
  std::vector<int> cuts() const;
  void split(int first, int end, std::vector<int>& ends) const;
  int candidates_between(int first, int end) const;
  bool assign_backward();
  void find_gradients();
  void find_options();
  void find_options(int block);
  BlockOption evaluate(int block, const std::vector<int>& kept, bool late) const;
  std::int64_t peak_of(const StepSchedule& runs, const std::vector<int>& initial,
                       const std::vector<int>& final, bool backward) const;
  void keep_best(std::vector<BlockOption>& options) const;

  const StepModel& model_;
  int forward_ = 0;                                   // operations of forward
  std::vector<int> writer_, last_forward_read_;       // by tensor; -1: none
  std::vector<int> first_backward_read_, last_read_;  // by tensor; -1: none
  std::vector<char> droppable_;                       // by tensor
  std::vector<int> block_of_;                         // by operation of forward
  std::vector<StepBlock> blocks_;
  std::vector<std::vector<int>> between_;  // by block: tensors that it gets from before
  std::vector<int> gradients_;             // tensors that backward writes
  std::int64_t fixed_bytes_ = 0;
};

}  // namespace convoy::partition
