// mma.sync, the matrix instruction of a warp, and the loads of its operands (PTX ISA, "Matrix
// multiply-accumulate operation using mma instruction"). It computes D[16, 8] += A[16, 32 bytes]
// B[8, 32 bytes]^T with fp32 accumulation. All operands are in registers.
//
// The registers of lane l are as follows. d[2 h + i] is the element of D in row l / 4 + 8 h and
// column 2 (l % 4) + i. a[h] is word l % 4 of the first 16 bytes of row l / 4 + 8 h of A; a[h + 2]
// is the same word of the other 16 bytes. b0 and b1 are these two words of row l / 4 of B. Device
// code, sm_80 on.
#pragma once

#include <cstdint>

namespace convoy::kernels::gemm {

using Word = std::uint32_t;

// Loads four matrices of eight rows of 16 bytes. Each lane passes the address of one row in shared
// memory. If `transposed`, each matrix is transposed as a matrix of 8 x 8 elements of 16 bits.
template <bool transposed>
__device__ inline void load_matrices(Word (&words)[4], Word address) {
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address));
}

template <bool transposed>
__device__ inline void load_matrices(Word (&words)[4], const void* from) {
  load_matrices<transposed>(words, static_cast<Word>(__cvta_generic_to_shared(from)));
}
// Loads two such matrices. The addresses are those of lanes 0 to 15.
template <bool transposed>
__device__ inline void load_two_matrices(Word (&words)[2], Word address) {
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(words[0]), "=r"(words[1])
                 : "r"(address));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(words[0]), "=r"(words[1])
                 : "r"(address));
}

template <typename T>
__device__ inline void multiply_tile(float (&d)[4], const Word (&a)[4], Word b0, Word b1) {
  if constexpr (sizeof(T) == 2)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Multiplies rows of 16 bytes, which are 8 elements of bf16: D[16, 8] += A[16, 8] B[8, 8]^T.
__device__ inline void multiply_half_tile(float (&d)[4], const Word (&a)[2], Word b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}

}  // namespace convoy::kernels::gemm
