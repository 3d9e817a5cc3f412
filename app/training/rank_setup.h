// Prepares a rank on its host: device, collectives, data delivery, threads and cores.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/execute/session.h"
#include "app/training/dataset.h"
#include "app/training/report/report.h"
#include "app/training/train_options.h"
#include "comm/placement/environment.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

// Returns the rank's device for --backend: its GPU, which becomes the current one, or the host's
// processor. Call it before MPI_Init. If there is no such device, prints the error once per host
// and throws ExitStatus.
comm::LocalDevice device_of(kernels::Backend backend);

// Describes the input of a session that trains or tests on `dataset` with batches of `capacity`
// samples per replica (a group of ranks that computes whole steps). Throws UsageError if
// `on_device` (--data-on-device) is set but the data set cannot be kept on the device.
InputOptions input_of(kernels::Backend backend, const Dataset& dataset, std::int64_t capacity,
                      bool on_device);
// Describes the input of a session whose batches bring the stored pixels of their images to the
// device. `image` is the shape of the images that the network gets.
InputOptions streamed_input(kernels::Backend backend, const data::StoreInfo& info, data::ImageShape image,
                            std::int64_t capacity);
// Says in which form the loader delivers batches to a session with this input and memory. A stage
// of a partitioned step gets only the inputs for which its memory has a region.
Dataset::Delivery delivery_for(const InputOptions& input, const ModelMemory& memory);

// Binds the rank to its share of the host's cores, close to its device if it has one. Sets and
// returns its number of threads; 0 means one per core. Call it before the first kernel.
int use_cores(const comm::MpiEnvironment& environment, std::int64_t threads);

// Return host, device and cores of every rank, or of the given ranks. Only rank 0 gets them; the
// other ranks get nothing. Collective.
std::vector<RankPlace> places_of(const comm::MpiEnvironment& environment);
std::vector<RankPlace> places_of(const comm::MpiEnvironment& environment, const comm::Communicator& ranks);

}  // namespace convoy::app
