// Runs products by cuBLAS behind the same interface as our own kernel families. cuBLAS serves as a
// comparison, and plans may choose it for plain products.
#include <cublas_v2.h>
#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <stdexcept>

#include "kernels/device/cuda_capture_lock.h"
#include "kernels/device/cuda_error.h"
#include "kernels/gemm/common/epilogue.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::gemm {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // NVIDIA's recommendation for Hopper

void check(cublasStatus_t status, const char* expression) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(fmt::format("{} failed: {}", expression, cublasGetStatusName(status)));
}
#define CONVOY_CUBLAS(expression) check(expression, #expression)

// Returns the handle of the calling thread. The handle is made when the thread binds its first
// plan, because cuBLAS cannot be initialised inside a capture. A handle has one stream, so threads
// that capture at the same time need separate handles.
cublasHandle_t handle() {
  struct Destroy {
    void operator()(cublasContext* handle) const {
      // cuBLAS waits for the whole device here, which would invalidate another thread's capture.
      const std::unique_lock lock(capture_lock());
      cublasDestroy(handle);
    }
  };
  thread_local const std::unique_ptr<cublasContext, Destroy> owner = [] {
    const std::unique_lock lock(capture_lock());
    cublasHandle_t made = nullptr;
    CONVOY_CUBLAS(cublasCreate(&made));
    return std::unique_ptr<cublasContext, Destroy>(made);
  }();
  return owner.get();
}

bool supports_cublas(const Problem& problem) {
  const bool types = problem.math == Math::bf16 || problem.output == DType::f32;
  return types && !problem.bias && !problem.relu;
}

std::vector<Plan> cublas_candidates(const Problem& problem) {
  const std::size_t sums = problem.column_sums ? slot_elements(problem.n, kSumSlots) * sizeof(float) : 0;
  return {{Rung::cublas, 0, 1, kWorkspaceBytes + sums}};
}

// Binds a product to cuBLAS. cuBLAS is column-major, so it computes our C transposed, as B^T A^T.
Launch bind_cublas(const Problem& problem, const Plan&, const Buffers& buffers) {
  return [=, library = handle(), epilogue = epilogue_of(problem, buffers)](Stream on) {
    const cudaStream_t stream = on.get();
    CONVOY_CUBLAS(cublasSetStream(library, stream));
    CONVOY_CUBLAS(cublasSetWorkspace(library, buffers.workspace, kWorkspaceBytes));
    const cudaDataType in = problem.math == Math::bf16 ? CUDA_R_16BF : CUDA_R_32F;
    const cudaDataType out = problem.output == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
    const auto compute = problem.math == Math::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    CONVOY_CUBLAS(cublasGemmEx(library, problem.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                               problem.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, int(problem.n),
                               int(problem.m), int(problem.k), &problem.alpha, buffers.b, in,
                               int(problem.ldb), buffers.a, in, int(problem.lda), &problem.beta, buffers.c,
                               out, int(problem.ldc), compute, CUBLAS_GEMM_DEFAULT));
    if (!problem.column_sums) return;
    auto* slots = reinterpret_cast<float*>(static_cast<std::uint8_t*>(buffers.workspace) + kWorkspaceBytes);
    sum_columns(epilogue, problem.m, problem.n, slots, stream, buffers.members);
    sum_slots(slots, kSumSlots, problem.n, buffers.column_sums, stream, buffers.members);
  };
}

}  // namespace

const RungEntry& cublas_rung() {
  static const RungEntry entry{supports_cublas, cublas_candidates, bind_cublas, {"gemmEx"}};
  return entry;
}

}  // namespace convoy::kernels::gemm
