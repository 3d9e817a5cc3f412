// The simplest kernel of matrix products: one thread computes one element of C, straight from
// device memory.
#include "kernels/gemm/common/epilogue.cuh"
#include "kernels/gemm/rungs.h"
#include "kernels/gemm/simple/strided.cuh"

namespace convoy::kernels::gemm {
namespace {

template <typename T>
__global__ void elementwise_kernel(Strided<T> a, Strided<T> b, std::int64_t m, std::int64_t n, std::int64_t k,
                                   Epilogue epilogue, std::ptrdiff_t member_stride) {
  a = cuda::of_member(a, member_stride);
  b = cuda::of_member(b, member_stride);
  epilogue = cuda::of_member(epilogue, member_stride);
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const std::int64_t column = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (std::int64_t i = 0; i < k; ++i) sum = fmaf(a(row, i), b(i, column), sum);
  epilogue.store(sum, row, column);
}

template <typename T>
void launch(const Problem& p, const Buffers& buffers, const Epilogue& epilogue, cudaStream_t stream) {
  const dim3 grid(unsigned(ceil_div(p.m, 8)), unsigned(ceil_div(p.n, 32)));
  cuda::launch(elementwise_kernel<T>, grid, dim3(32, 8), Stream(stream), buffers.members,
               strided_a<T>(p, buffers), strided_b<T>(p, buffers), p.m, p.n, p.k, epilogue);
}

}  // namespace

const RungEntry& elementwise_rung() {
  static const RungEntry entry{simple_supports,
                               simple_candidates<Rung::elementwise>,
                               bind_simple<launch<float>, launch<__nv_bfloat16>>,
                               {"32x8"}};
  return entry;
}

}  // namespace convoy::kernels::gemm
