// The resource tracker: tells how much of a multiprocessor every kernel of a program takes. It
// reads the compiled kernels and the sizes of their grids, so no kernel has to run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/execute/program.h"

namespace convoy::app {

// The number of multiprocessors of a device, and the limits of one multiprocessor.
struct DeviceLimits {
  std::string name;
  int multiprocessors = 1;
  int threads = 2048, blocks = 32;  // the most that are resident at the same time
  std::int64_t registers = 65536;
  std::int64_t shared_bytes = 233472;
  // Shared memory that the system takes for every block, in addition to that of the kernel.
  std::int64_t shared_bytes_of_system = 0;
  int kernels = 128;  // the most kernels that run on the whole device at the same time
};

// The resources of one kernel launch.
struct KernelUse {
  std::int64_t blocks = 1;                             // blocks of the grid
  int threads = 1;                                     // threads of a block
  int registers = 0;                                   // registers of a thread
  std::int64_t static_shared = 0, dynamic_shared = 0;  // shared memory of a block
  int resident = 1;                                    // blocks that fit on a multiprocessor

  // Returns the fraction of the device that the grid fills, at most 1.
  double share(const DeviceLimits& device) const;
};

struct ResourceTable {
  DeviceLimits device;
  // For each instruction: its kernels. Empty if the instruction only copies or communicates.
  std::vector<std::vector<KernelUse>> kernels;
};

// Captures every launch of the program in a CUDA graph of the current GPU, and reads the kernels of
// the graph, which never runs. Instructions that communicate get no kernels.
ResourceTable track_resources(const Program& program);

}  // namespace convoy::app
