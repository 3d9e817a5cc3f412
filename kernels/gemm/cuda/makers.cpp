// Calls the kernel families of the GEMM (rungs.h): selects the family of a problem or plan, and
// keeps the facts about the device.
#include <fmt/format.h>

#include <array>
#include <mutex>
#include <stdexcept>

#include "kernels/device/cuda_error.h"
#include "kernels/gemm/bench/measure.h"
#include "kernels/gemm/common/epilogue.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::gemm {
namespace {

const RungEntry& entry_of(Rung rung) {
  switch (rung) {
    case Rung::elementwise:
      return elementwise_rung();
    case Rung::shared_tiles:
      return shared_tiles_rung();
    case Rung::register_tiles:
      return register_tiles_rung();
    case Rung::mma_sync:
      return mma_sync_rung();
    case Rung::wgmma:
      return wgmma_rung();
    case Rung::cublas:
      return cublas_rung();
  }
  throw std::logic_error("unknown rung");
}

DeviceFacts& known_facts() {
  static std::mutex mutex;
  static std::array<DeviceFacts, 64> known{};
  int device = 0;
  CONVOY_CUDA(cudaGetDevice(&device));
  const std::scoped_lock lock(mutex);
  DeviceFacts& facts = known.at(std::size_t(device));
  if (facts.multiprocessors == 0) {
    CONVOY_CUDA(cudaDeviceGetAttribute(&facts.major, cudaDevAttrComputeCapabilityMajor, device));
    CONVOY_CUDA(cudaDeviceGetAttribute(&facts.minor, cudaDevAttrComputeCapabilityMinor, device));
    CONVOY_CUDA(cudaDeviceGetAttribute(&facts.multiprocessors, cudaDevAttrMultiProcessorCount, device));
  }
  return facts;
}

}  // namespace

const DeviceFacts& device_facts() { return known_facts(); }

void pretend_major(int major) {
  DeviceFacts& facts = known_facts();
  if (major == 0)
    facts = {};  // the next call reads the facts again
  else
    facts.major = major;
}

Epilogue epilogue_of(const Problem& problem, const Buffers& buffers) {
  Epilogue epilogue;
  epilogue.c = buffers.c;
  epilogue.ldc = problem.ldc;
  epilogue.alpha = problem.alpha;
  epilogue.beta = problem.beta;
  epilogue.bias = problem.bias ? buffers.bias : nullptr;
  epilogue.relu = problem.relu;
  epilogue.bf16 = problem.output == DType::bf16;
  return epilogue;
}

bool supports(Rung rung, const Problem& problem) { return entry_of(rung).supports(problem.checked()); }

std::vector<Plan> candidates(Rung rung, const Problem& problem) {
  const Problem checked = problem.checked();
  const RungEntry& entry = entry_of(rung);
  if (!entry.supports(checked))
    throw std::invalid_argument(fmt::format("gemm: {} cannot do {}", name_of(rung), checked.to_string()));
  return entry.candidates(checked);
}

Plan plan(Rung rung, const Problem& problem) { return candidates(rung, problem).front(); }

Plan plan(const Problem& problem) {
  const bool tensor_cores = problem.math != Math::fp32;
  if (!tensor_cores) return plan(Rung::register_tiles, problem);
  return plan(supports(Rung::wgmma, problem) ? Rung::wgmma : Rung::mma_sync, problem);
}

Launch bind(const Problem& problem, const Plan& plan, const Buffers& buffers) {
  const Problem checked = problem.checked();
  if (buffers.a == nullptr || buffers.b == nullptr || buffers.c == nullptr ||
      (checked.bias && buffers.bias == nullptr) || (checked.column_sums && buffers.column_sums == nullptr) ||
      (plan.workspace_bytes > 0 && buffers.workspace == nullptr))
    throw std::invalid_argument(fmt::format("gemm: {}: a buffer is missing", checked.to_string()));
  if (buffers.members.count > 1 && !takes_members(plan))
    throw std::invalid_argument(
        fmt::format("gemm: {} takes one member, found {}", plan.to_string(), buffers.members.count));
  return entry_of(plan.rung).bind(checked, plan, buffers);
}

std::string Plan::to_string() const {
  const std::string cut = splits > 1 ? fmt::format(" split {}", splits) : "";
  return fmt::format("{} {}{}", name_of(rung), entry_of(rung).tiles.at(std::size_t(tile)), cut);
}

}  // namespace convoy::kernels::gemm
