#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include "app/timing/program_times.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {

void run_in_named_ranges(const Program& program) {
  for (const Instruction& instruction : program.instructions()) {
    nvtxRangePushA(fmt::format("{} {}", instruction.layer, instruction.kind).c_str());
    instruction.launch({});
    nvtxRangePop();
  }
  kernels::synchronize(kernels::Backend::cuda);
}

}  // namespace convoy::app
