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
};

class Program {
 public:
  void add(Instruction instruction) { instructions_.push_back(std::move(instruction)); }
  const std::vector<Instruction>& instructions() const { return instructions_; }

  void run(kernels::Stream stream = nullptr) const {
    for (const Instruction& instruction : instructions_) instruction.launch(stream);
  }

 private:
  std::vector<Instruction> instructions_;
};

}  // namespace convoy::app
