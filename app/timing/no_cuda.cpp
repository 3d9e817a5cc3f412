// Replaces the cuda_*.cpp files in builds without CUDA.
#include "app/timing/launch_timer.h"
#include "app/timing/program_times.h"

namespace convoy::app {

std::unique_ptr<LaunchTimer> make_cuda_launch_timer(std::vector<kernels::Launch>) {
  kernels::throw_no_backend(kernels::Backend::cuda);
}
void run_in_named_ranges(const Program&) { kernels::throw_no_backend(kernels::Backend::cuda); }

}  // namespace convoy::app
