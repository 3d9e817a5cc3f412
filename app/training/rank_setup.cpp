#include "app/training/rank_setup.h"

#include <fmt/format.h>
#include <omp.h>

#include "app/errors.h"
#include "comm/placement/launcher.h"
#include "comm/placement/rank_placement.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {

comm::LocalDevice device_of(kernels::Backend backend) {
  if (backend != kernels::Backend::cuda) return {};
  try {
    return comm::take_local_device();
  } catch (const std::exception& error) {
    const std::string what = error.what(), flag = "--backend cuda: ";
    comm::print_once_before_mpi(what.starts_with(flag) ? what : flag + what);
    throw ExitStatus{1};
  }
}

InputOptions streamed_input(kernels::Backend backend, const data::StoreInfo& info, data::ImageShape image,
                            std::int64_t capacity) {
  InputOptions input;
  if (backend != kernels::Backend::cuda) return input;
  input.kind = InputOptions::Kind::streamed;
  input.mean = info.mean;
  input.std = info.std;
  input.batch_bytes = data::cut_capacity(info.shape, image, capacity);
  input.stored = info.shape;
  return input;
}

InputOptions input_of(kernels::Backend backend, const Dataset& dataset, std::int64_t capacity,
                      bool on_device) {
  const data::StoreInfo& info = dataset.info();
  InputOptions input = streamed_input(backend, info, dataset.input_shape(), capacity);
  if (backend != kernels::Backend::cuda) return input;
  if (on_device && info.format == data::ImageFormat::encoded)
    throw UsageError(
        "--data-on-device: the data set holds encoded images, expected pixels (convoy data convert --encode "
        "raw)");
  if (on_device) input.kind = InputOptions::Kind::resident;
  input.resident_images = dataset.train_size() + dataset.test_size();
  input.most_image_ops = dataset.most_image_ops();
  return input;
}

Dataset::Delivery delivery_for(const InputOptions& input, const ModelMemory& memory) {
  using Kind = InputOptions::Kind;
  if (!memory.has_images() && !memory.has_transforms()) return {data::BatchOutput::labels};
  if (input.kind == Kind::filled) return {};
  if (input.kind == Kind::resident || !memory.has_images())
    return {data::BatchOutput::transforms, nullptr, kRingSlots};
  return {data::BatchOutput::cuts, &kernels::pinned_memory(), kRingSlots};
}

int use_cores(const comm::MpiEnvironment& environment, std::int64_t threads) {
  const std::vector<int> cores = comm::pin_to_cores(environment.world(), environment.device().near_cores);
  const int count = threads > 0 ? static_cast<int>(threads) : static_cast<int>(cores.size());
  omp_set_num_threads(count);
  return count;
}

std::vector<RankPlace> places_of(const comm::MpiEnvironment& environment) {
  return places_of(environment, environment.world());
}

std::vector<RankPlace> places_of(const comm::MpiEnvironment& environment, const comm::Communicator& ranks) {
  std::vector<RankPlace> places;
  const std::string device = environment.device().to_string();
  for (comm::RankPlacement& placement : comm::gather_placement(ranks, device))
    places.push_back({std::move(placement.host), std::move(placement.device), std::move(placement.cores)});
  return places;
}

}  // namespace convoy::app
