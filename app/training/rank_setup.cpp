#include "app/training/rank_setup.h"

#include <fmt/format.h>
#include <omp.h>

#include "app/errors.h"
#include "comm/placement/launcher.h"
#include "comm/placement/topology.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {

kernels::Backend backend_of(const std::string& backend, const std::string& precision) {
  if (backend == "cuda") return kernels::Backend::cuda;
  if (precision != "fp32")
    throw UsageError(fmt::format("--precision {}: the {} backend computes in fp32", precision, backend));
  return backend == "reference" ? kernels::Backend::reference : kernels::Backend::cpu;
}

comm::LocalDevice device_of(const std::string& backend) {
  if (backend != "cuda") return {};
  try {
    return comm::take_local_device();
  } catch (const std::exception& error) {
    const std::string what = error.what(), flag = "--backend cuda: ";
    comm::print_once_before_mpi(what.starts_with(flag) ? what : flag + what);
    throw ExitStatus{1};
  }
}

std::unique_ptr<comm::Collectives> make_collectives(kernels::Backend backend, const comm::Communicator& ranks,
                                                    comm::Sums sums) {
  return backend == kernels::Backend::cuda ? comm::make_nccl_collectives(ranks, sums)
                                           : comm::make_mpi_collectives(ranks);
}

InputOptions device_input(kernels::Backend backend, Dataset& dataset) {
  InputOptions input;
  if (backend != kernels::Backend::cuda) return input;
  input.kind = InputOptions::Kind::streamed;
  input.augmented = !dataset.only_cuts();
  input.stored = input.augmented ? dataset.input_shape() : dataset.info().shape;
  input.mean = dataset.info().mean;
  input.std = dataset.info().std;
  dataset.deliver({input.augmented ? data::BatchOutput::channels_last : data::BatchOutput::raw,
                   &kernels::pinned_memory(), kRingSlots});
  return input;
}

int use_cores(const comm::MpiEnvironment& environment, std::int64_t threads) {
  const std::vector<int> cores = comm::pin_to_cores(environment.world(), environment.device().near_cores);
  const int count = threads > 0 ? static_cast<int>(threads) : static_cast<int>(cores.size());
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
