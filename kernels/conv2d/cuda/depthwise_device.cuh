// Device code that the kernel families of the depthwise engine share.
#pragma once

#include <type_traits>

#include "kernels/conv2d/cuda/depthwise.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/cuda_members.cuh"
#include "kernels/device/cuda_shifted_sums.cuh"

namespace convoy::kernels::conv {

// Translates an address in the memory of member 0 (MemberLayout, kernels/device/kernel.h) to the
// memory of the member that this block computes.
template <typename T>
__device__ __forceinline__ T* moved(const DepthwiseCall& call, T* pointer) {
  return cuda::of_member(pointer, call.operands.members.stride);
}

// Returns the partial sums of the blocks, which are float or double (DepthwiseOperands).
template <typename Sum>
__device__ __forceinline__ Sum* partials_of(const DepthwiseCall& call) {
  return static_cast<Sum*>(moved(call, call.operands.partials));
}

// Return the offset in elements of a pixel's first channel, in the input or in the output tensor.
__device__ __forceinline__ std::int64_t input_offset(const DepthwiseShape& shape, int sample, int row,
                                                     int column) {
  return ((std::int64_t{sample} * shape.input_h + row) * shape.input_w + column) * shape.channels;
}
__device__ __forceinline__ std::int64_t output_offset(const DepthwiseShape& shape, int sample, int row,
                                                      int column) {
  return ((std::int64_t{sample} * shape.output_h + row) * shape.output_w + column) * shape.channels;
}

// The first sample and the first output pixel of a tile.
struct TilePlace {
  int sample, row, column;
};
// Returns where tile number `tile` begins. The tile's patches (DepthwiseTiling) have `rows` x
// `columns` output pixels.
template <class Axis, int rows, int columns>
__device__ __forceinline__ TilePlace place_of(const DepthwiseCall& call, const DepthwiseTiling& tiling,
                                              int tile) {
  const int rest = tile / tiling.tiles_across, batch = rest / tiling.tiles_down;
  return {batch * tiling.images,
          Axis::output_origin(rest - batch * tiling.tiles_down, tiling.down * rows, call.padding[0]),
          Axis::output_origin(tile - rest * tiling.tiles_across, tiling.across * columns, call.padding[1])};
}

// Two neighbouring channels: StoredPair as the tensor stores them, float2 for arithmetic.
template <typename T>
using StoredPair = std::conditional_t<sizeof(T) == 2, std::uint32_t, float2>;
__device__ __forceinline__ float2 floats_of(float2 pair) { return pair; }
__device__ __forceinline__ float2 floats_of(std::uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
}
template <typename T>
__device__ __forceinline__ StoredPair<T> load_stored(const T* from) {
  return *reinterpret_cast<const StoredPair<T>*>(from);
}
template <typename T>
__device__ __forceinline__ float2 load_pair(const T* from) {
  return floats_of(load_stored(from));
}
__device__ __forceinline__ void add_product(float2& sum, float2 a, float2 b) {
  sum.x = fmaf(a.x, b.x, sum.x);
  sum.y = fmaf(a.y, b.y, sum.y);
}

// Applies the ReLU and the mask to two channels of an output pixel, and stores both at `offset`.
// Returns the stored values, which are rounded to T.
template <typename T>
__device__ __forceinline__ float2 store_pair(const DepthwiseCall& call, float2 pair, std::int64_t offset) {
  float value[2] = {pair.x, pair.y};
  if (call.operands.relu) value[0] = cuda::rectified(value[0]), value[1] = cuda::rectified(value[1]);
  if (call.operands.mask != nullptr) {
    const float2 mask = load_pair(static_cast<const T*>(moved(call, call.operands.mask)) + offset);
    value[0] = mask.x > 0 ? value[0] : 0.0f;
    value[1] = mask.y > 0 ? value[1] : 0.0f;
  }
  const cuda::Pack<T, 2> stored = cuda::pack_of<T>(value);
  cuda::store_pack(static_cast<T*>(moved(call, call.operands.output)) + offset, stored);
  cuda::unpack(stored, value);
  return {value[0], value[1]};
}

// Two neighbouring channels of batch norm's sums (cuda_shifted_sums.cuh) of outputs of type T.
template <typename T>
using SumsPair = std::conditional_t<sizeof(T) == 2, float2, double2>;

// Adds up a thread's outputs and their squares for batch norm.
template <typename T>
class OutputSums {
 public:
  // Adds two channels of an output, unless its sample is not valid (`counts`).
  __device__ __forceinline__ void add(float2 pair, bool counts) {
    if constexpr (cuda::kShiftsSums<sizeof(T)>) {
      if (!counts) return;
      if (count_++ == 0) shift_ = pair;
      pair.x -= shift_.x, pair.y -= shift_.y;
    } else if (!counts) {
      pair = {0, 0};
    }
    sum_.x += pair.x, sum_.y += pair.y;
    add_product(squares_, pair, pair);
  }
  // Stores the sum of the outputs and then that of their squares.
  __device__ __forceinline__ void get(SumsPair<T> (&to)[2]) const {
    to[0] = {sum_.x, sum_.y}, to[1] = {squares_.x, squares_.y};
    if constexpr (cuda::kShiftsSums<sizeof(T)>) {
      cuda::remove_shift(to[0].x, to[1].x, count_, shift_.x);
      cuda::remove_shift(to[0].y, to[1].y, count_, shift_.y);
    }
  }

 private:
  float2 sum_ = {0, 0}, squares_ = {0, 0}, shift_ = {0, 0};
  int count_ = 0;
};

}  // namespace convoy::kernels::conv
