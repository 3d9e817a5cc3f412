// Sets up a rank on its host: its device, its threads and cores, and the delivery of data.
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

// Returns the rank's device for --backend. For `cuda` this is a GPU, which becomes the current
// device; else it is the host's processor. Call it before MPI_Init. If there is no GPU, prints the
// error once per host and throws ExitStatus.
comm::LocalDevice device_of(kernels::Backend backend);

// Describes the input of a session that trains or tests on `dataset` with batches of `capacity`
// samples per replica (a group of ranks that computes whole steps). Throws UsageError if
// `on_device` (--data-on-device) is set but the data set cannot be kept on the device.
InputOptions input_of(kernels::Backend backend, const Dataset& dataset, std::int64_t capacity,
                      bool on_device);
// Describes the input of a session whose device gets the stored pixels of the images with every
// batch. `image` is the shape of the images that the network gets.
InputOptions streamed_input(kernels::Backend backend, const data::StoreInfo& info, data::ImageShape image,
                            std::int64_t capacity);
// Says in which form the loader delivers batches to a session with this input and memory. With
// --partition, the memory of a stage may have no region for images. The loader then delivers no
// images to the stage.
Dataset::Delivery delivery_for(const InputOptions& input, const ModelMemory& memory);

// Binds the rank to its share of the host's cores, close to its device if it has one. Sets the
// number of threads of its kernels to `threads`, or to the number of its cores if `threads` is 0,
// and returns it. Call it before the first kernel.
int use_cores(const comm::MpiEnvironment& environment, std::int64_t threads);

// places_of() returns host, device and cores of every rank, or of the given ranks, on rank 0. The
// other ranks get an empty list. Collective.
std::vector<RankPlace> places_of(const comm::MpiEnvironment& environment);
std::vector<RankPlace> places_of(const comm::MpiEnvironment& environment, const comm::Communicator& ranks);

}  // namespace convoy::app
