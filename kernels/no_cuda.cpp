// Stands in for the CUDA sources of kernels/ in builds without CUDA. Each operation has one row.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "kernels/accumulate/accumulate.h"
#include "kernels/add/add.h"
#include "kernels/batch_norm/batch_norm.h"
#include "kernels/concat/concat.h"
#include "kernels/conv2d/bench/cudnn.h"
#include "kernels/conv2d/bench/measure.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/device/device_memory.h"
#include "kernels/dropout/dropout.h"
#include "kernels/gemm/bench/measure.h"
#include "kernels/image_ops/image_ops.h"
#include "kernels/linear/linear.h"
#include "kernels/local_response_norm/local_response_norm.h"
#include "kernels/mix/mix.h"
#include "kernels/normalise/normalise.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/pool/pool.h"
#include "kernels/relu/relu.h"
#include "kernels/reorder/reorder.h"
#include "kernels/resample/resample.h"
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

namespace convoy::kernels::cuda {

#define NO_CUDA(name, Problem) \
  Kernel name(const Problem&, KernelRequest&) { throw_no_backend(Backend::cuda); }
NO_CUDA(accumulate_gradients, AccumulateProblem)
NO_CUDA(add_forward, AddProblem)
NO_CUDA(batch_norm_statistics, BatchNormProblem)
NO_CUDA(batch_norm_forward, BatchNormProblem)
NO_CUDA(batch_norm_inference, BatchNormProblem)
NO_CUDA(batch_norm_backward_reduce, BatchNormProblem)
NO_CUDA(batch_norm_backward, BatchNormProblem)
NO_CUDA(concat_forward, ConcatProblem)
NO_CUDA(concat_backward, ConcatProblem)
NO_CUDA(conv2d_forward, Conv2dProblem)
NO_CUDA(conv2d_backward_data, Conv2dProblem)
NO_CUDA(conv2d_backward_weights, Conv2dProblem)
NO_CUDA(dropout_forward, DropoutProblem)
NO_CUDA(dropout_backward, DropoutProblem)
NO_CUDA(image_ops_forward, ImageOpsProblem)
NO_CUDA(linear_forward, LinearProblem)
NO_CUDA(linear_backward_data, LinearProblem)
NO_CUDA(linear_backward_weights, LinearProblem)
NO_CUDA(local_response_norm_forward, LocalResponseNormProblem)
NO_CUDA(local_response_norm_backward, LocalResponseNormProblem)
NO_CUDA(mix_forward, MixProblem)
NO_CUDA(moving_average, MovingAverageProblem)
NO_CUDA(normalise_forward, NormaliseProblem)
NO_CUDA(optimizer_update, OptimizerProblem)
NO_CUDA(squared_norm, SquaredNormProblem)
NO_CUDA(clip_scale, ClipProblem)
NO_CUDA(pool_forward, PoolProblem)
NO_CUDA(pool_backward, PoolProblem)
NO_CUDA(relu_forward, ReluProblem)
NO_CUDA(relu_backward, ReluProblem)
NO_CUDA(reorder_forward, ReorderProblem)
NO_CUDA(resample_forward, ResampleProblem)
NO_CUDA(softmax_cross_entropy_forward, LossProblem)
NO_CUDA(softmax_cross_entropy_backward, LossProblem)

bool conv2d_fuses_input_norm() { return false; }

}  // namespace convoy::kernels::cuda

namespace convoy::kernels {

int gpu_count() { return 0; }
GpuInfo use_gpu(int) { throw_no_backend(Backend::cuda); }
std::byte* reserve_gpu_memory(std::size_t) { throw_no_backend(Backend::cuda); }
void release_gpu_memory(std::byte*) noexcept {}
std::int64_t free_gpu_memory() { throw_no_backend(Backend::cuda); }
void copy_in(Backend, void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void copy_out(Backend, void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void repeat(Backend, void* data, std::size_t block, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(data);
  for (std::size_t done = block; done < bytes; done *= 2)
    std::memcpy(to + done, data, std::min(done, bytes - done));
}
void clear(Backend, void* data, std::size_t bytes, Stream) { std::memset(data, 0, bytes); }
void synchronize(Backend) {}
std::pmr::memory_resource& pinned_memory() { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels

namespace convoy::kernels::gemm {
namespace {
[[noreturn]] void fail() {
  throw std::runtime_error("gemm: this build has no CUDA; configure with -DCONVOY_CUDA=ON to have it");
}
}  // namespace

bool supports(Rung, const Problem&) { return false; }
Plan plan(Rung, const Problem&) { fail(); }
Plan plan(const Problem&) { fail(); }
Plan chosen(const Problem&) { fail(); }
std::string device_name() { fail(); }
std::vector<Plan> candidates(Rung, const Problem&) { fail(); }
Launch bind(const Problem&, const Plan&, const Buffers&) { fail(); }
std::string Plan::to_string() const { return name_of(rung); }

struct Bench::State {};
Bench::Bench(const Problem&) { fail(); }
Bench::~Bench() = default;
Bench::Bench(Bench&&) noexcept = default;
Check Bench::check(const Plan&, std::uint64_t) { fail(); }
std::vector<Timing> Bench::time(const std::vector<Plan>&, double, int) { fail(); }
bool device_present() { return false; }
void pretend_major(int) {}
DeviceSummary summarize_device() { fail(); }

}  // namespace convoy::kernels::gemm

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
