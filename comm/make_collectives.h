// Chooses the library that moves tensors between the ranks of a run: NCCL on GPUs, MPI on hosts.
#pragma once

#include <memory>

#include "comm/collectives.h"
#include "comm/communicator.h"
#include "comm/nccl/nccl_collectives.h"
#include "kernels/device/kernel.h"

namespace convoy::comm {

// `sums` tells NCCL whether the ranks sum gradients or only small data (nccl_collectives.h).
// `ranks` must outlive the result. Collective.
std::unique_ptr<Collectives> make_collectives(kernels::Backend backend, const Communicator& ranks,
                                              Sums sums = Sums::gradients);

}  // namespace convoy::comm
