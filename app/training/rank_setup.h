// How this rank uses its host: backend, threads, cores.
#pragma once

#include "app/commands/train_options.h"
#include "app/training/report.h"
#include "comm/communicator.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

// Throws UsageError for what this build or the backend cannot do.
kernels::Backend backend_of(const std::string& backend, const std::string& precision);

// Binds the rank to its share of the host's cores and sets its number of threads (0: one a core); returns it.
// Call it before the first kernel.
int use_cores(const comm::Communicator& ranks, std::int64_t threads);

// Where every rank runs, on rank 0; empty elsewhere. Collective.
std::vector<RankPlace> places_of(const comm::Communicator& ranks);

}  // namespace convoy::app
