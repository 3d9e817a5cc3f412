// A program is the flat list of instructions that one rank runs, each bound to its addresses.
// Running it makes no decisions and allocates nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::app {

// A piece of memory that an instruction reads or writes.
struct MemoryRange {
  const void* begin = nullptr;
  std::int64_t bytes = 0;
};

// The part of a device that runs an instruction. A GPU has an engine for copies in each direction.
enum class Engine : std::uint8_t { compute, copy_out, copy_back };

struct Instruction {
  std::string layer, kind;
  kernels::Launch launch;
  double flops = 0;
  std::int64_t bytes = 0;  // size of the operands, the least that the instruction moves
  bool communicates = false;
  std::vector<MemoryRange> reads = {}, writes = {};  // lane_plan.h orders instructions by these
  // The instruction has more blocks than the device has space for, so work that starts later waits
  // for most of them.
  bool fills = false;
  // For an instruction that only starts a communication: makes a stream wait until that has ended.
  std::function<void(kernels::Stream)> follow = nullptr;
  int member = 0;  // the first of those that it computes; a host's instructions have one each
  Engine engine = Engine::compute;
};

class Program {
 public:
  void add(Instruction instruction) { instructions_.push_back(std::move(instruction)); }
  const std::vector<Instruction>& instructions() const { return instructions_; }

  // Replaces every launch with what `wrap` returns for it, for tracing. Unwrapped programs pay
  // nothing.
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
};

}  // namespace convoy::app
