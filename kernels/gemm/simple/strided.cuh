// Code that the two simplest families, elementwise and shared_tiles, have in common. An operand has
// a stride for its rows and one for its columns, so that the same kernel serves plain and
// transposed matrices. Both families compute tf32 problems in plain fp32.
#pragma once

#include <cuda_bf16.h>

#include "kernels/device/cuda_members.cuh"
#include "kernels/gemm/common/epilogue.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::gemm {

template <typename T>
struct Strided {
  const T* data;
  std::int64_t row_stride, column_stride;

  template <typename Visit>
  __device__ void each_pointer(Visit visit) {
    visit(data);
  }
  __device__ float operator()(std::int64_t row, std::int64_t column) const {
    return static_cast<float>(data[row * row_stride + column * column_stride]);
  }
};

template <typename T>
Strided<T> strided_a(const Problem& p, const Buffers& buffers) {
  const auto* data = static_cast<const T*>(buffers.a);
  return p.transpose_a ? Strided<T>{data, 1, p.lda} : Strided<T>{data, p.lda, 1};
}
template <typename T>
Strided<T> strided_b(const Problem& p, const Buffers& buffers) {
  const auto* data = static_cast<const T*>(buffers.b);
  return p.transpose_b ? Strided<T>{data, 1, p.ldb} : Strided<T>{data, p.ldb, 1};
}

inline bool simple_supports(const Problem& p) { return ceil_div(p.n, 32) <= 65535; }
inline std::size_t sums_workspace(const Problem& p) {
  return p.column_sums ? slot_elements(p.n, kSumSlots) * sizeof(float) : 0;
}
template <Rung rung>
std::vector<Plan> simple_candidates(const Problem& p) {
  return {{rung, 0, 1, sums_workspace(p)}};
}

// Computes column sums of C in a separate pass, for kernels that do not compute them.
inline void finish_sums(const Problem& p, const Epilogue& epilogue, const Buffers& buffers, float* slots,
                        cudaStream_t stream) {
  if (!p.column_sums) return;
  sum_columns(epilogue, p.m, p.n, slots, stream, buffers.members);
  sum_slots(slots, kSumSlots, p.n, buffers.column_sums, stream, buffers.members);
}

using SimpleLaunch = void(const Problem&, const Buffers&, const Epilogue&, cudaStream_t);
template <SimpleLaunch* fp32, SimpleLaunch* bf16>
Launch bind_simple(const Problem& p, const Plan&, const Buffers& buffers) {
  return [=, epilogue = epilogue_of(p, buffers)](Stream on) {
    (p.math == Math::bf16 ? bf16 : fp32)(p, buffers, epilogue, on.get());
    finish_sums(p, epilogue, buffers, static_cast<float*>(buffers.workspace), on.get());
  };
}

}  // namespace convoy::kernels::gemm
