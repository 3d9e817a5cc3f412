// Reads and writes activations in device code, in packs of 16 bytes of f32 or bf16 elements. All
// arithmetic is in float.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/device/tensor.h"

namespace convoy::kernels::cuda {

using bf16 = __nv_bfloat16;

// The number of elements in a pack of 16 bytes.
template <typename T>
inline constexpr int kPackWidth = 16 / static_cast<int>(sizeof(T));

// V neighbouring elements, which one instruction moves. The address of a pack must be a multiple of
// its size.
template <typename T, int V>
struct alignas(sizeof(T) * V) Pack {
  T value[V];
};

template <int V, typename T>
__device__ __forceinline__ Pack<T, V> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, V>*>(from);
}
// Loads a pack without keeping it in the L1 cache. Use it for data that the same thread overwrites
// afterwards, because writes to lines that L1 holds take longer.
template <int V, typename T>
__device__ __forceinline__ Pack<T, V> load_pack_past_l1(const T* from) {
  if constexpr (sizeof(Pack<T, V>) == sizeof(int4)) {
    const int4 words = __ldcg(reinterpret_cast<const int4*>(from));
    return reinterpret_cast<const Pack<T, V>&>(words);
  }
  return load_pack<V>(from);
}
template <int V, typename T>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, V>& pack) {
  *reinterpret_cast<Pack<T, V>*>(to) = pack;
}
template <typename T, int V>
__device__ __forceinline__ Pack<T, V> zero_pack() {
  Pack<T, V> pack;
  for (int i = 0; i < V; ++i) pack.value[i] = T(0.0f);
  return pack;
}

__device__ __forceinline__ float to_float(float value) { return value; }
__device__ __forceinline__ float to_float(bf16 value) { return __bfloat162float(value); }

template <int V>
__device__ __forceinline__ void unpack(const Pack<float, V>& pack, float (&to)[V]) {
#pragma unroll
  for (int i = 0; i < V; ++i) to[i] = pack.value[i];
}
template <int V>
__device__ __forceinline__ void unpack(const Pack<bf16, V>& pack, float (&to)[V]) {
  if constexpr (V == 1) {
    to[0] = __bfloat162float(pack.value[0]);
    // A bf16 value is the upper half of a float, so a shift and a mask give a word's two elements.
  } else {
    const auto* words = reinterpret_cast<const std::uint32_t*>(pack.value);
#pragma unroll
    for (int i = 0; i < V / 2; ++i) {
      to[2 * i] = __uint_as_float(words[i] << 16);
      to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
  }
}

template <typename T, int V>
__device__ __forceinline__ Pack<T, V> pack_of(const float (&from)[V]) {
  Pack<T, V> pack;
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int i = 0; i < V; ++i) pack.value[i] = from[i];
  } else if constexpr (V == 1) {
    pack.value[0] = __float2bfloat16_rn(from[0]);
  } else {
#pragma unroll
    for (int i = 0; i < V / 2; ++i)
      reinterpret_cast<__nv_bfloat162*>(pack.value)[i] = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
  }
  return pack;
}

// Load and store an element whose type is known only at run time. Packs are faster.
__device__ __forceinline__ float load_element(DType type, const void* from, std::int64_t index) {
  return type == DType::bf16 ? to_float(static_cast<const bf16*>(from)[index])
                             : static_cast<const float*>(from)[index];
}
__device__ __forceinline__ void store_element(DType type, void* to, std::int64_t index, float value) {
  if (type == DType::bf16)
    static_cast<bf16*>(to)[index] = __float2bfloat16_rn(value);
  else
    static_cast<float*>(to)[index] = value;
}

// Returns max(value, 0), or NaN for NaN.
__device__ __forceinline__ float rectified(float value) { return value < 0.0f ? 0.0f : value; }

}  // namespace convoy::kernels::cuda
