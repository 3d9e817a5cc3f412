// Replaces the functions of comm's CUDA sources in builds without CUDA. They throw an error.
#include <stdexcept>

#include "comm/benchmark/measure.h"
#include "comm/nccl/nccl_collectives.h"
#include "comm/placement/local_device.h"
#include "kernels/device/kernel.h"

namespace convoy::comm {

LocalDevice take_local_device() { kernels::throw_no_backend(kernels::Backend::cuda); }
LocalDevice current_device() { kernels::throw_no_backend(kernels::Backend::cuda); }

std::unique_ptr<Collectives> make_nccl_collectives(const Communicator&, Sums) {
  kernels::throw_no_backend(kernels::Backend::cuda);
}
std::unique_ptr<CollectivesMeter> make_nccl_meter(const Communicator&, std::int64_t) {
  kernels::throw_no_backend(kernels::Backend::cuda);
}

}  // namespace convoy::comm
