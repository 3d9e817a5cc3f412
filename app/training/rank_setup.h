// Sets a rank up on its host: device, collectives, data delivery, threads and cores.
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

// Returns the rank's device for --backend: its GPU, made current, or the host's processor. Call it
// before MPI_Init. Prints the error once a host and throws ExitStatus if there is no such device.
comm::LocalDevice device_of(kernels::Backend backend);

// Describes the input of a session that trains or tests on `dataset` with batches of `capacity`
// samples a replica. Throws UsageError if the set cannot be kept `on_device` (--data-on-device).
InputOptions input_of(kernels::Backend backend, const Dataset& dataset, std::int64_t capacity,
                      bool on_device);
// Returns the delivery for such a session. A stage of a partitioned step reads only the tensors
// that its memory has room for.
Dataset::Delivery delivery_for(const InputOptions& input, const ModelMemory& memory);

// Binds the rank to its share of the host's cores, next to its device if it has one. Sets and
// returns its number of threads (0: one a core). Call it before the first kernel.
int use_cores(const comm::MpiEnvironment& environment, std::int64_t threads);

// Return the places of all ranks, or of these, on rank 0, nothing on the others. Collective.
std::vector<RankPlace> places_of(const comm::MpiEnvironment& environment);
std::vector<RankPlace> places_of(const comm::MpiEnvironment& environment, const comm::Communicator& ranks);

}  // namespace convoy::app
