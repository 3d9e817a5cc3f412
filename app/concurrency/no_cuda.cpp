// Replaces the cuda_*.cpp files in builds without CUDA.
#include "app/concurrency/resources.h"
#include "app/concurrency/sample_streams.h"
#include "app/concurrency/step_timer.h"

namespace convoy::app {

ResourceTable track_resources(const Program&) { kernels::throw_no_backend(kernels::Backend::cuda); }
std::unique_ptr<StepTimer> make_step_timer(Session&, const Program&) {
  kernels::throw_no_backend(kernels::Backend::cuda);
}

std::unique_ptr<SampleStreams> make_sample_streams(Session&, const CompiledGraph&, const StepLoad&) {
  kernels::throw_no_backend(kernels::Backend::cuda);
}

}  // namespace convoy::app
