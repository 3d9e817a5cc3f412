// The epilogue turns each finished sum into an element of C: it applies alpha, beta, bias, ReLU and
// mask, and stores the result. Device code.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

namespace convoy::kernels::gemm {

struct Epilogue {
  void* c = nullptr;
  std::int64_t ldc = 0;
  float alpha = 1;
  float beta = 0;
  const float* bias = nullptr;  // null if there is no bias
  bool relu = false;
  // If not null, a mask of C's type and pitch. C is 0 wherever the mask is not above 0.
  const void* mask = nullptr;
  bool bf16 = false;         // C is bf16, else f32
  float* partial = nullptr;  // if not null, raw sums go to partial[split][m][n] and not to C

  template <typename Visit>
  __device__ void each_pointer(Visit visit) {
    visit(c, bias, mask, partial);
  }
  // Returns the element of C for a sum. The pointers may be those of member 0 (MemberLayout,
  // kernels/device/kernel.h). Then `offset` is the distance in bytes from that member's memory to
  // the memory of the block's member.
  __device__ float finish(float value, std::int64_t row, std::int64_t column,
                          std::ptrdiff_t offset = 0) const {
    value *= alpha;
    if (beta != 0) value = fmaf(beta, at(moved(c, offset), row * ldc + column), value);
    if (bias != nullptr) value += moved(bias, offset)[column];
    if (relu && value < 0) value = 0;  // the test is false for a NaN, so a NaN stays
    return mask == nullptr || at(moved(mask, offset), row * ldc + column) > 0 ? value : 0;
  }
  __device__ float load(std::int64_t index) const { return at(c, index); }
  __device__ float at(const void* elements, std::int64_t index) const {
    return bf16 ? __bfloat162float(static_cast<const __nv_bfloat16*>(elements)[index])
                : static_cast<const float*>(elements)[index];
  }
  __device__ void store(float value, std::int64_t row, std::int64_t column, std::ptrdiff_t offset = 0) const {
    value = finish(value, row, column, offset);
    if (bf16)
      static_cast<__nv_bfloat16*>(moved(c, offset))[row * ldc + column] = __float2bfloat16_rn(value);
    else
      static_cast<float*>(moved(c, offset))[row * ldc + column] = value;
  }
  // Stores two or four neighbouring elements of a row, except those from column n on. One wide
  // store is used if the type and the address allow it.
  template <int count>
  __device__ void store_run(const float (&values)[count], std::int64_t row, std::int64_t column,
                            std::int64_t n, std::ptrdiff_t offset = 0) const {
    const std::int64_t index = row * ldc + column;
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(c) + offset + index * (bf16 ? 2 : 4);
    if (column + count > n ||
        // The low bits of the address tell whether it is aligned. Computing a remainder would cost
        // a division.
        (address & (count * (bf16 ? 2 : 4) - 1)) != 0) {
      for (int i = 0; i < count && column + i < n; ++i) store(values[i], row, column + i, offset);
      return;
    }
    float done[count];
    for (int i = 0; i < count; ++i) done[i] = finish(values[i], row, column + i, offset);
    if (bf16) {
      for (int i = 0; i < count; i += 2)
        reinterpret_cast<__nv_bfloat162*>(address)[i / 2] = __floats2bfloat162_rn(done[i], done[i + 1]);
    } else {
      using Vector = std::conditional_t<count == 4, float4, float2>;
      *reinterpret_cast<Vector*>(address) = *reinterpret_cast<const Vector*>(done);
    }
  }

  template <typename T>
  __device__ static T* moved(T* pointer, std::ptrdiff_t offset) {
    auto* const bytes = static_cast<std::uint8_t*>(const_cast<void*>(static_cast<const void*>(pointer)));
    return static_cast<T*>(static_cast<void*>(bytes + offset));
  }
};

// If k is split, returns an epilogue that stores the raw sums of split `split`. Otherwise returns
// `epilogue`.
__device__ inline Epilogue epilogue_of_split(const Epilogue& epilogue, int split, std::int64_t m,
                                             std::int64_t pitch) {
  if (epilogue.partial == nullptr) return epilogue;
  Epilogue raw;
  raw.c = epilogue.partial + split * m * pitch;
  raw.ldc = pitch;
  return raw;
}

}  // namespace convoy::kernels::gemm
