// Stands in for cuda_executor.cpp and cuda_launch_timer.cpp in builds without CUDA.
#include "app/runtime/executor.h"
#include "app/runtime/launch_timer.h"

namespace convoy::app {

std::unique_ptr<Executor> make_cuda_executor(const ModelMemory&, const DeviceExecution&) {
  kernels::throw_no_backend(kernels::Backend::cuda);
}
std::unique_ptr<LaunchTimer> make_cuda_launch_timer(std::vector<kernels::Launch>) {
  kernels::throw_no_backend(kernels::Backend::cuda);
}

}  // namespace convoy::app
