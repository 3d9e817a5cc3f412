// Stands in for cuda_launch_timer.cpp in builds without CUDA.
#include "app/timing/launch_timer.h"

namespace convoy::app {

std::unique_ptr<LaunchTimer> make_cuda_launch_timer(std::vector<kernels::Launch>) {
  kernels::throw_no_backend(kernels::Backend::cuda);
}

}  // namespace convoy::app
