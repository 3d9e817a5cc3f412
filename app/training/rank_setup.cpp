#include "app/training/rank_setup.h"

#include <fmt/format.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>

#include "app/commands/commands.h"

namespace convoy::app {

kernels::Backend backend_of(const std::string& backend, const std::string& precision) {
  if (backend == "cuda") kernels::throw_no_backend(kernels::Backend::cuda);
  if (precision != "fp32")
    throw UsageError(fmt::format("--precision {}: the {} backend computes in fp32", precision, backend));
  return backend == "reference" ? kernels::Backend::reference : kernels::Backend::cpu;
}

int use_cores(const comm::Communicator& ranks, std::int64_t threads) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  const int count = threads > 0 ? static_cast<int>(threads) : std::max(1, cores / ranks.local_size());
  omp_set_num_threads(count);
  return count;
}

}  // namespace convoy::app
