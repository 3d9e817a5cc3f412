// Stands in for the CUDA files in builds without CUDA.
#include <stdexcept>

#include "kernels/conv2d/bench/cudnn.h"
#include "kernels/conv2d/bench/measure.h"
#include "kernels/conv2d/conv2d.h"

namespace convoy::kernels::cuda {

bool conv2d_fuses_input_norm() { return false; }
Kernel conv2d_forward(const Conv2dProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel conv2d_backward_data(const Conv2dProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
Kernel conv2d_backward_weights(const Conv2dProblem&, KernelRequest&) { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels::cuda

namespace convoy::kernels::conv {
namespace {
[[noreturn]] void fail() {
  throw std::runtime_error("conv2d: this build has no CUDA; configure with -DCONVOY_CUDA=ON to have it");
}
}  // namespace

bool supports(Engine, const Task&) { return false; }
std::vector<Plan> candidates(Engine, const Task&) { fail(); }
std::vector<Plan> candidates(const Task&) { fail(); }
std::vector<Plan> worth_timing(const Task&, int) { fail(); }
Plan chosen(const Task&) { fail(); }
Launch bind(const Task&, const Plan&, const Buffers&) { fail(); }

struct Bench::State {};
Bench::Bench(const Task&) { fail(); }
Bench::~Bench() = default;
Bench::Bench(Bench&&) noexcept = default;
gemm::Check Bench::check(const Plan&, std::uint64_t) { fail(); }
gemm::Check Bench::check(const Binder&, std::size_t, std::uint64_t) { fail(); }
std::vector<gemm::Timing> Bench::time(const std::vector<Plan>&, double, int) { fail(); }
std::vector<gemm::Timing> Bench::time(const std::vector<Binder>&, std::size_t, double, int) { fail(); }

std::string cudnn_version() { return {}; }
CudnnPlans cudnn_plans(const Task&, int) { return {}; }

}  // namespace convoy::kernels::conv
