// What one rank runs: a flat list of instructions, each bound to its addresses. Running it decides nothing and
// allocates nothing.
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

struct Instruction {
  std::string layer, kind;
  kernels::Launch launch;
  double flops = 0;
  std::int64_t bytes = 0;  // of the operands: what the instruction moves at least
  bool communicates = false;
  std::vector<MemoryRange> reads = {}, writes = {};  // what decides which instructions may run side by side
  // The instruction fills the device, with more blocks than there is room for: what starts beside it comes behind most of it.
  bool fills = false;
  // Of one that only starts something: puts a stream behind the end of that.
  std::function<void(kernels::Stream)> follow = nullptr;
};

class Program {
 public:
  void add(Instruction instruction) { instructions_.push_back(std::move(instruction)); }
  const std::vector<Instruction>& instructions() const { return instructions_; }

  // Replaces every launch by what `wrap` makes of it (tracing); a program that nobody wraps is as fast as ever.
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
