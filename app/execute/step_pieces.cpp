#include "app/execute/step_pieces.h"

#include <algorithm>
#include <iterator>

#include "kernels/device/gpu_model.h"

namespace convoy::app {
namespace {

// Returns the estimated milliseconds of an instruction: a launch takes 2 microseconds, and kernels
// are assumed to reach about two thirds of the device's best rates.
double estimated_ms(const Instruction& instruction, Precision precision) {
  constexpr double kReached = 0.66, kLaunchMs = 0.002;
  const kernels::GpuModel& gpu = kernels::kReferenceGpu;
  const double operations = precision == Precision::bf16   ? gpu.operations_bf16
                            : precision == Precision::tf32 ? gpu.operations_tf32
                                                           : gpu.operations_fp32;
  const double seconds =
      std::max(instruction.flops / operations, static_cast<double>(instruction.bytes) / gpu.copied_bytes);
  return kLaunchMs + seconds * 1e3 / kReached;
}

}  // namespace

std::vector<StepPiece> divide_step(const Program& program, const LanePlan& plan, Precision precision,
                                   double longest_ms) {
  const bool whole =
      longest_ms <= 0 || std::ranges::any_of(program.instructions(), [](const Instruction& one) {
        return one.communicates || one.engine != Engine::compute;
      });
  std::vector<StepPiece> pieces(1);
  for (std::size_t i = 0; i < plan.order.size(); ++i) {
    const auto instruction = static_cast<std::size_t>(plan.order[i]);
    const double ms = estimated_ms(program.instructions()[instruction], precision);
    if (!whole && pieces.back().end > pieces.back().first && pieces.back().milliseconds + ms > longest_ms)
      pieces.push_back({i, i, 0});
    pieces.back().end = i + 1;
    pieces.back().milliseconds += ms;
  }
  return pieces;
}

std::vector<std::vector<MemoryRange>> first_uses(const Program& program, const LanePlan& plan,
                                                 const std::vector<StepPiece>& pieces,
                                                 const MemoryRange& state) {
  std::vector<std::vector<MemoryRange>> uses;
  RangeSet used;
  for (const StepPiece& piece : pieces) {
    std::vector<MemoryRange>& own = uses.emplace_back();
    for (std::size_t i = piece.first; i < piece.end; ++i) {
      const Instruction& one = program.instructions()[static_cast<std::size_t>(plan.order[i])];
      for (const auto* ranges : {&one.reads, &one.writes})
        for (const MemoryRange& range : *ranges) {
          const std::byte* const begin = std::max(range.first(), state.first());
          const std::byte* const end = std::min(range.end(), state.end());
          std::ranges::copy(used.add({begin, end - begin}), std::back_inserter(own));
        }
    }
  }
  return uses;
}

}  // namespace convoy::app
