// How this rank uses its host: backend, threads, cores.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/execute/session.h"
#include "app/training/dataset.h"
#include "app/training/report/report.h"
#include "app/training/train_options.h"
#include "comm/collectives.h"
#include "comm/nccl/nccl_collectives.h"
#include "comm/placement/environment.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

// The rank's device for --backend: its GPU, made current, or the host's processor. Call it before MPI_Init. Says what
// is wrong once a host and throws ExitStatus when there is none to be had.
comm::LocalDevice device_of(kernels::Backend backend);

// The collectives of a backend: here, and nowhere else, is MPI or NCCL chosen. Collective.
std::unique_ptr<comm::Collectives> make_collectives(kernels::Backend backend, const comm::Communicator& ranks,
                                                    comm::Sums sums = comm::Sums::gradients);

// The input of a session that trains or tests on `dataset` with batches of `capacity` samples a
// replica. Throws UsageError if `on_device` (--data-on-device) cannot be had.
InputOptions input_of(kernels::Backend backend, const Dataset& dataset, std::int64_t capacity,
                      bool on_device);
// The delivery that such a session expects: a stage of a partitioned step reads only what its
// memory has room for.
Dataset::Delivery delivery_for(const InputOptions& input, const ModelMemory& memory);

// Binds the rank to its share of the host's cores, of those next to its device where it has one, and sets its number
// of threads (0: one a core); returns it. Call it before the first kernel.
int use_cores(const comm::MpiEnvironment& environment, std::int64_t threads);

// Where every rank runs, on rank 0; empty elsewhere. Collective.
std::vector<RankPlace> places_of(const comm::MpiEnvironment& environment);

}  // namespace convoy::app
