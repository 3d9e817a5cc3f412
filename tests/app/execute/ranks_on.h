// Makes collectives over all ranks of a test, for data in the memory of a backend. On CUDA every
// rank has its own GPU.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "comm/nccl/nccl_collectives.h"
#include "kernels/device/device_memory.h"
#include "tests/mpi/world.h"

namespace convoy::test {

// Selects the rank's GPU. Returns why the test must be skipped, or an empty text if every rank has
// a GPU. The result is the same on all ranks. Collective.
inline std::string missing_devices(kernels::Backend backend) {
  if (backend != kernels::Backend::cuda) return {};
  std::int32_t here = 0;
  try {
    here = kernels::gpu_count();
  } catch (const std::runtime_error&) {  // no driver, so there is no GPU
  }
  const int ranks = world().local_size();
  const std::int32_t found = world().all_reduce(here, comm::ReduceOp::min, "devices");
  if (found < ranks)
    return fmt::format("needs a GPU for each of this host's {} ranks, found {}", ranks, found);
  kernels::use_gpu(world().local_rank());
  return {};
}

inline std::unique_ptr<comm::Collectives> collectives_on(kernels::Backend backend,
                                                         comm::Sums sums = comm::Sums::gradients) {
  return backend == kernels::Backend::cuda ? comm::make_nccl_collectives(world(), sums)
                                           : comm::make_mpi_collectives(world());
}

}  // namespace convoy::test
