// Stands in for the GPU's files in builds without CUDA.
#include <stdexcept>

#include "kernels/gemm/bench/measure.h"
#include "kernels/gemm/gemm.h"

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
