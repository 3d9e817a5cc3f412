// The collectives of all ranks of a test on a backend, each rank with a GPU of its own where that is CUDA.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "comm/nccl/nccl_collectives.h"
#include "kernels/device/device_memory.h"
#include "tests/mpi/world.h"

namespace convoy::test {

// Empty where every rank has what it needs, the same on all of them; makes its GPU the rank's. Collective.
inline std::string missing_devices(kernels::Backend backend) {
  if (backend != kernels::Backend::cuda) return {};
  std::int32_t here = 0;
  try {
    here = kernels::gpu_count();
  } catch (const std::runtime_error&) {  // there is no driver either
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
