// wgmma, the matrix instruction of Hopper's warpgroups: D[64, n] = A[64, 32 bytes] B[n, 32 bytes]^T
// + (accumulate ? D : 0) with fp32 accumulation (PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions"). Operands are in shared memory and are passed as matrix descriptors; A
// may be in registers. tf32 requires k contiguous in shared memory, and ignores the low 13 bits of
// each word. Device code, sm_90a only.
//
// In lane l of warp w, d[4 j + 2 h + i] is the element of D in row 16 w + l / 4 + 8 h and column 8
// j + 2 (l % 4) + i.
#pragma once

#include <cstdint>

#include "kernels/device/cuda_sm90.cuh"

namespace convoy::kernels::sm90 {

// Call this after ordinary writes to registers and before products that read these registers.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int pending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// Makes the compiler assume that these registers change here. Otherwise it might reuse registers of
// A while a product still reads them.
template <int count>
__device__ inline void keep(std::uint32_t (&words)[count][4]) {
#pragma unroll
  for (int i = 0; i < count; ++i)
    asm volatile("" : "+r"(words[i][0]), "+r"(words[i][1]), "+r"(words[i][2]), "+r"(words[i][3])::"memory");
}

// Describes a tile of rows of `row_bytes` bytes in TMA's swizzle of as many bytes. Boxes of the
// tile begin at multiples of eight rows. If k is contiguous, a row is one of A or a column of B.
// Otherwise a row is a value of k, and `leading_bytes` is the distance from one box of rows or
// columns to the next.
template <int row_bytes>
__device__ inline std::uint64_t matrix_descriptor(const void* tile, std::uint32_t leading_bytes) {
  static_assert(row_bytes == 64 || row_bytes == 128);
  constexpr std::uint64_t kSwizzle = std::uint64_t{row_bytes == 128 ? 1 : 2} << 62;
  return kSwizzle | std::uint64_t{8 * row_bytes >> 4} << 32 | std::uint64_t{leading_bytes >> 4} << 16 |
         ((shared_address(tile) & 0x3ffffu) >> 4);
}

template <int n>
struct Wgmma;

// An instruction has n / 2 accumulators in each lane. CONVOY_PLACES_… are their placeholders in the
// text of the instruction, and CONVOY_ACC_… are the operands.
#define CONVOY_PLACES_32                                                 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15" \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define CONVOY_PLACES_64                                                             \
  CONVOY_PLACES_32                                                                   \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define CONVOY_PLACES_80 \
  CONVOY_PLACES_64       \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define CONVOY_PLACES_96 \
  CONVOY_PLACES_80       \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define CONVOY_PLACES_128                                                                        \
  CONVOY_PLACES_96                                                                               \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define CONVOY_ACC8(i)                                                                        \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define CONVOY_ACC_32 CONVOY_ACC8(0), CONVOY_ACC8(8), CONVOY_ACC8(16), CONVOY_ACC8(24)
#define CONVOY_ACC_64 CONVOY_ACC_32, CONVOY_ACC8(32), CONVOY_ACC8(40), CONVOY_ACC8(48), CONVOY_ACC8(56)
#define CONVOY_ACC_80 CONVOY_ACC_64, CONVOY_ACC8(64), CONVOY_ACC8(72)
#define CONVOY_ACC_96 CONVOY_ACC_80, CONVOY_ACC8(80), CONVOY_ACC8(88)
#define CONVOY_ACC_128 CONVOY_ACC_96, CONVOY_ACC8(96), CONVOY_ACC8(104), CONVOY_ACC8(112), CONVOY_ACC8(120)

// The operands after the accumulators are the descriptors a and b, `accumulate` and, for bf16, two
// flags: whether m is contiguous in a, and n in b. The macro's last five arguments are their
// placeholders in the text of the instruction.
#define CONVOY_WGMMA_BF16(n, words, at_a, at_b, at_accumulate, at_a_major, at_b_major)              \
  template <bool a_mn_major, bool b_mn_major>                                                       \
  __device__ static void bf16(float(&d)[words], std::uint64_t a, std::uint64_t b, int accumulate) { \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #at_accumulate                                \
                 ", 0;\n"                                                                           \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" CONVOY_PLACES_##words \
                 "}, %" #at_a ", %" #at_b ", p, 1, 1, %" #at_a_major ", %" #at_b_major ";\n}"       \
                 : CONVOY_ACC_##words                                                               \
                 : "l"(a), "l"(b), "r"(accumulate), "n"(int(a_mn_major)), "n"(int(b_mn_major)));    \
  }
// In this variant, A is in registers: those of mma.sync (gemm/mma_sync/mma_instructions.cuh), where
// lanes of warp w hold rows 16 w to 16 w + 15.
#define CONVOY_WGMMA_BF16_A(n, words, at_a0, at_a1, at_a2, at_a3, at_b, at_accumulate, at_b_major)           \
  template <bool b_mn_major>                                                                                 \
  __device__ static void bf16(float(&d)[words], const std::uint32_t(&a)[4], std::uint64_t b,                 \
                              int accumulate) {                                                              \
    asm volatile(                                                                                            \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %" #at_accumulate                                                  \
        ", 0;\n"                                                                                             \
        "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" CONVOY_PLACES_##words                   \
        "}, {%" #at_a0 ", %" #at_a1 ", %" #at_a2 ", %" #at_a3 "}, %" #at_b ", p, 1, 1, %" #at_b_major ";\n}" \
        : CONVOY_ACC_##words                                                                                 \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(int(b_mn_major)));        \
  }
#define CONVOY_WGMMA_TF32(n, words, at_a, at_b, at_accumulate)                                      \
  __device__ static void tf32(float(&d)[words], std::uint64_t a, std::uint64_t b, int accumulate) { \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #at_accumulate                                \
                 ", 0;\n"                                                                           \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {" CONVOY_PLACES_##words  \
                 "}, %" #at_a ", %" #at_b ", p, 1, 1;\n}"                                           \
                 : CONVOY_ACC_##words                                                               \
                 : "l"(a), "l"(b), "r"(accumulate));                                                \
  }
// In this variant, A is in registers. Lane l passes rows l / 4 and l / 4 + 8 of A at k = l % 4, and
// then the same rows at k = l % 4 + 4.
#define CONVOY_WGMMA_TF32_A(n, words, at_a0, at_a1, at_a2, at_a3, at_b, at_accumulate)              \
  __device__ static void tf32(float(&d)[words], const std::uint32_t(&a)[4], std::uint64_t b,        \
                              int accumulate) {                                                     \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #at_accumulate                                \
                 ", 0;\n"                                                                           \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {" CONVOY_PLACES_##words  \
                 "}, {%" #at_a0 ", %" #at_a1 ", %" #at_a2 ", %" #at_a3 "}, %" #at_b ", p, 1, 1;\n}" \
                 : CONVOY_ACC_##words                                                               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));            \
  }

template <>
struct Wgmma<64> {
  CONVOY_WGMMA_BF16(64, 32, 32, 33, 34, 35, 36)
  CONVOY_WGMMA_BF16_A(64, 32, 32, 33, 34, 35, 36, 37, 38)
  CONVOY_WGMMA_TF32(64, 32, 32, 33, 34)
  CONVOY_WGMMA_TF32_A(64, 32, 32, 33, 34, 35, 36, 37)
};

template <>
struct Wgmma<128> {
  CONVOY_WGMMA_BF16(128, 64, 64, 65, 66, 67, 68)
  CONVOY_WGMMA_BF16_A(128, 64, 64, 65, 66, 67, 68, 69, 70)
  CONVOY_WGMMA_TF32(128, 64, 64, 65, 66)
  CONVOY_WGMMA_TF32_A(128, 64, 64, 65, 66, 67, 68, 69)
};

template <>
struct Wgmma<160> {
  CONVOY_WGMMA_BF16(160, 80, 80, 81, 82, 83, 84)
  CONVOY_WGMMA_TF32(160, 80, 80, 81, 82)
};

template <>
struct Wgmma<192> {
  CONVOY_WGMMA_BF16(192, 96, 96, 97, 98, 99, 100)
  CONVOY_WGMMA_BF16_A(192, 96, 96, 97, 98, 99, 100, 101, 102)
  CONVOY_WGMMA_TF32(192, 96, 96, 97, 98)
};

template <>
struct Wgmma<256> {
  CONVOY_WGMMA_BF16(256, 128, 128, 129, 130, 131, 132)
  CONVOY_WGMMA_BF16_A(256, 128, 128, 129, 130, 131, 132, 133, 134)
  CONVOY_WGMMA_TF32(256, 128, 128, 129, 130)
};

#undef CONVOY_WGMMA_BF16
#undef CONVOY_WGMMA_BF16_A
#undef CONVOY_WGMMA_TF32
#undef CONVOY_WGMMA_TF32_A
#undef CONVOY_PLACES_32
#undef CONVOY_ACC_32
#undef CONVOY_PLACES_64
#undef CONVOY_ACC_64
#undef CONVOY_PLACES_80
#undef CONVOY_ACC_80
#undef CONVOY_PLACES_96
#undef CONVOY_ACC_96
#undef CONVOY_PLACES_128
#undef CONVOY_ACC_128
#undef CONVOY_ACC8

}  // namespace convoy::kernels::sm90
