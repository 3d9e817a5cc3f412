// Divides a training step into a chain of blocks for its memory planner. Determines for every block
// which tensors it can keep for its backward, and the memory and time of each choice.
//
// Forward is divided at tensors on which all later operations depend, such as the outputs of
// residual blocks. A block with many tensors (dense blocks, long skips) is divided further where
// several tensors are needed later.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/memory/step_model.h"

namespace convoy::partition {

// A set of tensors that a block can keep for backward. All bytes are in addition to the block's
// input.
struct BlockOption {
  std::vector<int> kept;           // kept tensors, except those that later blocks read
  std::int64_t kept_bytes = 0;     // bytes of `kept` and of the tensors that later blocks read
  std::int64_t forward_peak = 0;   // most bytes that are live while the block runs forward
  std::int64_t backward_peak = 0;  // most bytes that are live while it runs backward, with gradients
  double forward_ms = 0;           // time to run the block forward again, for `kept` and its outputs
  double repeated_ms = 0;          // time of the operations that run again in its backward
};

struct StepBlock {
  int first = 0, end = 0;                    // range of operations of forward
  int backward_first = 0, backward_end = 0;  // range of operations of backward
  std::vector<int> outputs;                  // tensors that later blocks read
  std::vector<int> own_outputs;              // those of `outputs` that the block's own backward needs
  // Bytes of gradients that are live when the block's backward begins.
  std::int64_t gradient_bytes = 0;
  double forward_ms = 0;             // time to make `outputs` again from the block's input
  std::int64_t forward_peak = 0;     // most bytes that are live while the block makes `outputs`
  std::vector<BlockOption> options;  // each option is better than any other one in some respect
  // An option that keeps nothing. The block does not run forward again as a whole. Instead, its
  // backward computes what it needs.
  BlockOption late;
};

// For each tensor, whether its content is in memory.
using Available = std::vector<char>;

class StepBlocks {
 public:
  // `model` must live longer than this object. The tensors `away` are in host memory until a run
  // reads them, so no block keeps them. Throws std::invalid_argument if an operation of forward
  // comes after one of backward.
  explicit StepBlocks(const StepModel& model, const std::vector<int>& away = {});

  const std::vector<StepBlock>& blocks() const { return blocks_; }
  // Returns the bytes of the tensors that backward reads and that no operation can compute again.
  std::int64_t fixed_bytes() const { return fixed_bytes_; }
  // Returns the bytes of the tensors that are in between(at) but not in between(base).
  std::int64_t bytes_between(int at, int base) const;
  // Returns the tensors that are written by blocks before `at` and read by block `at` or later
  // ones.
  const std::vector<int>& between(int at) const { return between_[static_cast<std::size_t>(at)]; }

  // append_forward() appends the runs of a block that make the tensors `wanted` from the available
  // ones. append_backward() appends the runs of the block's backward. Both functions update
  // `available`.
  void append_forward(int block, const std::vector<int>& wanted, Available& available,
                      StepSchedule& to) const;
  void append_backward(int block, Available& available, StepSchedule& to) const;

 private:
  void find_tensors();
  void cut();
  std::vector<int> crossing(int position) const;
  std::vector<int> cuts() const;
  void split(int first, int end, std::vector<int>& ends) const;
  std::vector<std::vector<int>> candidates_between(int first, int end) const;
  bool assign_backward();
  void leave_out(const std::vector<int>& away);
  void find_gradients();
  void find_options();
  void find_options(int block);
  BlockOption evaluate(int block, const std::vector<int>& kept, bool late) const;
  std::int64_t peak_of(const StepSchedule& runs, const std::vector<int>& initial,
                       const std::vector<int>& final, bool backward) const;
  void keep_best(std::vector<BlockOption>& options) const;

  const StepModel& model_;
  int forward_ = 0;  // number of operations of forward
  // For each tensor, the index of an operation; -1 if there is none.
  std::vector<int> writer_, last_forward_read_;
  std::vector<int> first_backward_read_, last_read_;
  // For each tensor: whether it may be dropped, and whether it is moved to host memory.
  std::vector<char> droppable_, away_;
  std::vector<int> block_of_;  // block of each operation of forward
  std::vector<StepBlock> blocks_;
  std::vector<std::vector<int>> between_;  // result of between() for each block
  std::vector<int> gradients_;             // tensors that operations of backward write
  std::int64_t fixed_bytes_ = 0;
};

}  // namespace convoy::partition
