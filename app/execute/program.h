// A program is the flat list of instructions that one rank runs in a step. Each instruction already
// knows its addresses, so running a program makes no decisions and allocates nothing.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "app/execute/memory_range.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

// The part of a device that runs an instruction. A GPU has one copy engine per direction.
enum class Engine : std::uint8_t { compute, copy_out, copy_back };

// The kinds of work that an instruction does on the sums of gradient buckets (comm/buckets.h).
enum class BucketAction : std::uint8_t { none, start, wait };

struct Instruction {
  std::string layer, kind;
  kernels::Launch launch;
  double flops = 0;
  // The bytes of all operands, which the instruction reads or writes at least once.
  std::int64_t bytes = 0;
  bool communicates = false;
  BucketAction buckets = BucketAction::none;
  // The memory that the instruction reads and writes. lane_plan.h finds from it which instructions
  // must keep their order.
  std::vector<MemoryRange> reads = {}, writes = {};
  // Whether the instruction has more thread blocks than fit on the device. Work that starts later
  // then waits until most of the blocks are done.
  bool fills = false;
  // All other instructions get free multiprocessors of a device before this one.
  bool background = false;
  // Set only for an instruction that starts a communication and does not wait for its end. Calling
  // `follow` makes a stream wait for that end.
  std::function<void(kernels::Stream)> follow = nullptr;
  // The first member (training) that the instruction computes. On a host it computes only this one;
  // on a device it may compute further members.
  int member = 0;
  Engine engine = Engine::compute;
  // The instruction reads indices that the step has computed. It must not be timed alone, because
  // other values in their place could point outside of the memory.
  bool reads_indices = false;
};

// The lanes in which a device runs a program, and the order in which the instructions are launched.
// Every lane runs its instructions in that order.
struct LaneOrder {
  std::vector<int> order;  // all instructions, each after those that it depends on (lane_plan.h)
  std::vector<int> lane;   // indexed by instruction; lanes count from 0
  // Pairs (a, b): instruction b waits for a, although they do not use the same memory.
  std::vector<std::pair<int, int>> holds = {};
  // Indexed by instruction: 1 if a device gives free multiprocessors to it first, else 0. If the
  // vector is empty, no instruction is urgent.
  std::vector<char> urgent = {};
  bool empty() const { return order.empty(); }
  bool operator==(const LaneOrder&) const = default;
};

class Program {
 public:
  void add(Instruction instruction) { instructions_.push_back(std::move(instruction)); }
  const std::vector<Instruction>& instructions() const { return instructions_; }

  // Says that another program continues this program's step. The gradients must stay in memory
  // until that program has run.
  void set_goes_on() { goes_on_ = true; }
  bool goes_on() const { return goes_on_; }
  // Says that the program computes the gradients of its batch. Other programs only evaluate.
  void set_trains() { trains_ = true; }
  bool trains() const { return trains_; }

  // Sets the lanes. Call it before an executor runs the program for the first time. If `lanes` is
  // empty, the executor chooses lanes itself.
  void arrange(LaneOrder lanes) { lanes_ = std::move(lanes); }
  const LaneOrder& lanes() const { return lanes_; }
  // Calls visit(instruction) for every instruction, in the launch order of the lanes if they are
  // set.
  template <typename Visit>
  void for_each_launched(const Visit& visit) const {
    for (std::size_t i = 0; i < instructions_.size(); ++i)
      visit(instructions_[lanes_.empty() ? i : static_cast<std::size_t>(lanes_.order[i])]);
  }

  // Replaces each launch by the launch that `wrap` returns for it. Tracing uses this. A program
  // that is not instrumented has no extra cost.
  using Wrap = std::function<kernels::Launch(std::size_t index, const kernels::Launch& launch)>;
  void instrument(const Wrap& wrap) {
    for (std::size_t i = 0; i < instructions_.size(); ++i)
      instructions_[i].launch = wrap(i, instructions_[i].launch);
  }

  void run(kernels::Stream stream = {}) const {
    for (const Instruction& instruction : instructions_) instruction.launch(stream);
  }

 private:
  std::vector<Instruction> instructions_;
  LaneOrder lanes_;
  bool goes_on_ = false, trains_ = false;
};

}  // namespace convoy::app
