// The resource tracker: what every kernel of a program takes of a multiprocessor. The figures are
// those of compiled kernels and their grids, so nothing runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/execute/program.h"

namespace convoy::app {

// The limits of one multiprocessor, and how many there are.
struct DeviceLimits {
  std::string name;
  int multiprocessors = 1;
  int threads = 2048, blocks = 32;  // resident at once
  std::int64_t registers = 65536;
  std::int64_t shared_bytes = 233472;
  std::int64_t shared_bytes_of_system = 0;  // in addition, for every block
  int kernels = 128;                        // of the whole device, at the same time
};

struct KernelUse {
  std::int64_t blocks = 1;                             // of the grid
  int threads = 1;                                     // of a block
  int registers = 0;                                   // of a thread
  std::int64_t static_shared = 0, dynamic_shared = 0;  // bytes of a block
  int resident = 1;                                    // blocks that one multiprocessor has space for

  // Returns the share of the device's space for blocks that the grid takes, at most 1.
  double share(const DeviceLimits& device) const;
};

struct ResourceTable {
  DeviceLimits device;
  std::vector<std::vector<KernelUse>> kernels;  // by instruction; none if it only copies or communicates
};

// Captures every launch of the program on the current GPU, without running it, and reads its
// kernels. Passes over instructions that communicate.
ResourceTable track_resources(const Program& program);

}  // namespace convoy::app
