// In builds without CUDA, replaces the CUDA sources of kernels/.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "kernels/conv2d/bench/cudnn.h"
#include "kernels/conv2d/bench/measure.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/multiprocessors.h"
#include "kernels/gemm/bench/measure.h"

namespace convoy::kernels::cuda {

bool conv2d_fuses_input_norm() { return false; }

}  // namespace convoy::kernels::cuda

namespace convoy::kernels {

int gpu_count() { return 0; }
GpuInfo use_gpu(int) { throw_no_backend(Backend::cuda); }
std::byte* reserve_gpu_memory(std::size_t) { throw_no_backend(Backend::cuda); }
void release_gpu_memory(std::byte*) noexcept {}
std::int64_t free_gpu_memory() { throw_no_backend(Backend::cuda); }
void copy_in(Backend, void* to, const void* from, std::size_t bytes, After) { std::memcpy(to, from, bytes); }
void copy_out(Backend, void* to, const void* from, std::size_t bytes, After) { std::memcpy(to, from, bytes); }
void repeat(Backend, void* data, std::size_t block, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(data);
  for (std::size_t done = block; done < bytes; done *= 2)
    std::memcpy(to + done, data, std::min(done, bytes - done));
}
void copy(Backend, void* to, const void* from, std::size_t bytes, Stream) { std::memcpy(to, from, bytes); }
void clear(Backend, void* data, std::size_t bytes, Stream) { std::memset(data, 0, bytes); }
void synchronize(Backend) {}
std::pmr::memory_resource& pinned_memory() { throw_no_backend(Backend::cuda); }
void MultiprocessorPart::Destroy::operator()(CUgreenCtx_st*) const {}
DividedMultiprocessors divide_multiprocessors(int) { throw_no_backend(Backend::cuda); }

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
