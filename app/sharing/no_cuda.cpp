// Replaces cuda_device_queue.cpp in builds without CUDA.
#include "app/sharing/device_queue.h"

namespace convoy::app {

std::unique_ptr<DeviceQueue> make_cuda_queue() { kernels::throw_no_backend(kernels::Backend::cuda); }

}  // namespace convoy::app
