#include "app/training/rank_setup.h"

#include <fmt/format.h>
#include <omp.h>

#include "app/commands/commands.h"
#include "comm/topology.h"

namespace convoy::app {

kernels::Backend backend_of(const std::string& backend, const std::string& precision) {
  if (backend == "cuda") kernels::throw_no_backend(kernels::Backend::cuda);
  if (precision != "fp32")
    throw UsageError(fmt::format("--precision {}: the {} backend computes in fp32", precision, backend));
  return backend == "reference" ? kernels::Backend::reference : kernels::Backend::cpu;
}

int use_cores(const comm::Communicator& ranks, std::int64_t threads) {
  const comm::Pinning pinning = comm::pin_to_cores(ranks);
  const int count = threads > 0 ? static_cast<int>(threads) : static_cast<int>(pinning.cores.size());
  omp_set_num_threads(count);
  return count;
}

std::vector<RankPlace> places_of(const comm::Communicator& ranks) {
  std::vector<RankPlace> places;
  for (comm::RankPlacement& placement : comm::gather_placement(ranks, "cpu"))
    places.push_back({std::move(placement.host), std::move(placement.device), std::move(placement.cores)});
  return places;
}

}  // namespace convoy::app
