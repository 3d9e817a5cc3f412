// Replaces cuda_executor.cpp in builds without CUDA.
#include "app/execute/executor.h"

namespace convoy::app {

std::unique_ptr<Executor> make_cuda_executor(const ModelMemory&, const DeviceExecution&) {
  kernels::throw_no_backend(kernels::Backend::cuda);
}

}  // namespace convoy::app
