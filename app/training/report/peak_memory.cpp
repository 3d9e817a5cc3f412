#include "app/training/report/peak_memory.h"

#include <array>
#include <fstream>
#include <span>
#include <string>

namespace convoy::app {

std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::int64_t kibibytes = 0; word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  return 0;
}

PeakMemory largest_peaks(const comm::Communicator& ranks, std::int64_t arena_bytes) {
  std::array<std::int64_t, 2> bytes{arena_bytes, peak_resident_bytes()};
  ranks.all_reduce(std::span<std::int64_t>(bytes), comm::ReduceOp::max, "peak memory");
  return {bytes[0], bytes[1]};
}

}  // namespace convoy::app
