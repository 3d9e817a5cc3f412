#include "app/training/rank_setup.h"

#include <fmt/format.h>
#include <omp.h>

#include "app/commands/commands.h"
#include "comm/launcher.h"
#include "comm/topology.h"

namespace convoy::app {

kernels::Backend backend_of(const std::string& backend, const std::string& precision) {
  if (backend == "cuda") kernels::throw_no_backend(kernels::Backend::cuda);
  if (precision != "fp32")
    throw UsageError(fmt::format("--precision {}: the {} backend computes in fp32", precision, backend));
  return backend == "reference" ? kernels::Backend::reference : kernels::Backend::cpu;
}

comm::LocalDevice device_of(const std::string& backend) {
  if (backend != "cuda") return {};
  try {
    return comm::take_local_device();
  } catch (const std::exception& error) {
    comm::print_once_before_mpi(error.what());
    throw ExitStatus{1};
  }
}

int use_cores(const comm::MpiEnvironment& environment, std::int64_t threads) {
  const comm::Pinning pinning = comm::pin_to_cores(environment.world(), environment.device().near_cores);
  const int count = threads > 0 ? static_cast<int>(threads) : static_cast<int>(pinning.cores.size());
  omp_set_num_threads(count);
  return count;
}

std::vector<RankPlace> places_of(const comm::MpiEnvironment& environment) {
  std::vector<RankPlace> places;
  const std::string device = environment.device().to_string();
  for (comm::RankPlacement& placement : comm::gather_placement(environment.world(), device))
    places.push_back({std::move(placement.host), std::move(placement.device), std::move(placement.cores)});
  return places;
}

}  // namespace convoy::app
