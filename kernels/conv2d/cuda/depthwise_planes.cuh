// Copies pixels between images and planes. A plane is one channel of a tile in shared memory
// (depthwise_products.h). Device code.
#pragma once

#include "kernels/conv2d/cuda/depthwise_device.cuh"
#include "kernels/conv2d/cuda/depthwise_products.h"
#include "kernels/gemm/mma_sync/mma_instructions.cuh"

namespace convoy::kernels::conv::products {

using cuda::bf16;
using gemm::Word;

// The part of a tensor that a tile reads, and the layout of the planes into which it is copied.
struct Window {
  const bf16* from;
  int height, row_pixels;  // height and width of the tensor
  int width;               // pixels in columns from `width` on are read as zero
  TilePlace first;         // the tile's first pixel, which may be outside the image
  const Plane& plane;
};

template <class F>
__device__ __forceinline__ Window input_window(const Call& call, const TilePlace& place) {
  const int column = F::input_origin(place.column, call.padding[1]);
  return {static_cast<const bf16*>(moved(call, call.operands.input)),
          call.input_h,
          call.input_w,
          min(call.input_w, column + call.input_columns),
          {place.sample, F::input_origin(place.row, call.padding[0]), column},
          call.input};
}

// Reads eight channels of a pixel, or zeros if the pixel is outside the image.
__device__ __forceinline__ uint4 load_pixel(const bf16* at, bool inside) {
  return inside ? __ldg(reinterpret_cast<const uint4*>(at)) : uint4{0, 0, 0, 0};
}
// Regroups four values. Each of a and b holds two channels of one pixel; `low` and `high` then hold
// two pixels of one channel each. A second call, with `low` and `high` as inputs, gives a and b
// again.
__device__ __forceinline__ void exchange(Word a, Word b, Word& low, Word& high) {
  low = __byte_perm(a, b, 0x5410), high = __byte_perm(a, b, 0x7632);
}

// Copies a window to the planes of the slab (range of channels) that begins at `channel`. A thread
// copies eight channels of two neighbouring pixels at a time.
template <int kSlab>
__device__ __forceinline__ void fill_planes(const Call& call, const Window& window, int channel,
                                            Word* planes) {
  constexpr int kChunks = kSlab / 8, kAtOnce = 4, kStep = kThreads / kChunks;
  const Plane& plane = window.plane;
  const int chunk = int(threadIdx.x) % kChunks, first = int(threadIdx.x) / kChunks;
  const int items = int(plane.pairs.divisor * plane.lines.divisor) * call.tiling.images;
  const bool there = channel + chunk * 8 < call.channels;
  const bf16* const from = window.from + channel + chunk * 8;
  Word* const to = planes + chunk * (8 * plane.words + call.skew_words());
#pragma unroll 1
  for (int item = first; item < items; item += kAtOnce * kStep) {
    uint4 pixel[kAtOnce][2];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const auto at = std::uint32_t(item + k * kStep), line = plane.pairs(at), image = plane.lines(line);
      const int h = window.first.row + int(line - image * plane.lines.divisor);
      const int w = window.first.column + 2 * int(at - line * plane.pairs.divisor);
      const int sample = window.first.sample + int(image);
      const bool inside =
          there && int(at) < items && unsigned(h) < unsigned(window.height) && sample < call.samples;
      const bf16* const source =
          from + ((std::int64_t{sample} * window.height + h) * window.row_pixels + w) * call.channels;
      pixel[k][0] = load_pixel(source, inside && unsigned(w) < unsigned(window.width));
      pixel[k][1] = load_pixel(source + call.channels, inside && unsigned(w + 1) < unsigned(window.width));
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const auto at = std::uint32_t(item + k * kStep), line = plane.pairs(at);
      if (int(at) >= items) break;
      Word* const pair = to + int(line) * (plane.pitch / 2) + int(at - line * plane.pairs.divisor);
      const Word a[4] = {pixel[k][0].x, pixel[k][0].y, pixel[k][0].z, pixel[k][0].w};
      const Word b[4] = {pixel[k][1].x, pixel[k][1].y, pixel[k][1].z, pixel[k][1].w};
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        Word low, high;
        exchange(a[c], b[c], low, high);
        pair[2 * c * plane.words] = low, pair[(2 * c + 1) * plane.words] = high;
      }
    }
  }
}

// Returns the index of a patch's first element in a plane. For numbers beyond the last patch it
// returns 0, so that lanes without a patch read an element inside the plane.
__device__ __forceinline__ int patch_offset(const DepthwiseTiling& tiling, const Plane& plane, int patch,
                                            int row_step, int column_step) {
  if (patch >= tiling.patches()) return 0;
  const int side = patch / tiling.across, down = side / tiling.images;
  const int column = patch - side * tiling.across, image = side - down * tiling.images;
  return (image * plane.rows + down * row_step) * plane.pitch + column * column_step;
}

// Zeroes the elements of `pixel` whose mask element is not above zero.
__device__ __forceinline__ void apply_mask(const bf16* mask, Word (&pixel)[4]) {
  const cuda::Pack<bf16, 8> bits = cuda::load_pack<8>(mask);
  float value[8];
  cuda::unpack(bits, value);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (!(value[i] > 0)) pixel[i / 2] &= i % 2 == 0 ? 0xffff0000u : 0x0000ffffu;
}

// Copies the outputs from their planes to the tensor. With `sums`, also adds the outputs of the
// first `valid` samples and their squares to `total`, for batch norm's sums.
template <class F, int kSlab, bool sums>
__device__ __forceinline__ void drain_planes(const Call& call, const TilePlace& place, int channel,
                                             const Word* planes, int valid, float (&total)[2][8]) {
  constexpr int kChunks = kSlab / 8, kStep = kThreads / kChunks;
  const int chunk = int(threadIdx.x) % kChunks, first = int(threadIdx.x) / kChunks;
  const int c = channel + chunk * 8;
  if (c >= call.channels) return;
  const int items = int(call.output.pairs.divisor * call.output.lines.divisor) * call.tiling.images;
  const Word* const from = planes + chunk * (8 * call.output.words + call.skew_words());
#pragma unroll 2
  for (int item = first; item < items; item += kStep) {
    const auto at = std::uint32_t(item), line = call.output.pairs(at), image = call.output.lines(line);
    const int row = place.row + int(line - image * call.output.lines.divisor);
    const int pair = int(at - line * call.output.pairs.divisor), column = place.column + 2 * pair;
    const int sample = place.sample + int(image);
    if (unsigned(row) >= unsigned(call.output_h) || sample >= call.samples) continue;
    const Word* const word = from + int(line) * call.output.pitch / 2 + pair;
    Word pixel[2][4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      exchange(word[2 * k * call.output.words], word[(2 * k + 1) * call.output.words], pixel[0][k],
               pixel[1][k]);
    const std::int64_t offset = output_offset(call, sample, row, column) + c;
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      if (unsigned(column + side) >= unsigned(call.output_w)) continue;
      const std::int64_t to = offset + side * call.channels;
      if (call.operands.mask != nullptr)
        apply_mask(static_cast<const bf16*>(moved(call, call.operands.mask)) + to, pixel[side]);
      *reinterpret_cast<uint4*>(static_cast<bf16*>(moved(call, call.operands.output)) + to) = {
          pixel[side][0], pixel[side][1], pixel[side][2], pixel[side][3]};
      if constexpr (sums) {
        if (sample >= valid) continue;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const Word bits = pixel[side][i / 2];
          const float value = __uint_as_float(i % 2 == 0 ? bits << 16 : bits & 0xffff0000u);
          total[0][i] += value;
          total[1][i] = fmaf(value, value, total[1][i]);
        }
      }
    }
  }
}

// Adds up the sums of all threads, and writes the results to [2][channels], which begins at `to`.
// `shared` has room for the sums of all warps, [kWarps][2][kSlab].
template <int kSlab>
__device__ __forceinline__ void store_totals(const Call& call, float (&total)[2][8], int channel,
                                             float* shared, float* to) {
  constexpr int kChunks = kSlab / 8;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int which = 0; which < 2; ++which)
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      for (int other = 16; other >= kChunks; other /= 2)
        total[which][i] += __shfl_xor_sync(0xffffffffu, total[which][i], other);
      if (lane < kChunks) shared[(warp * 2 + which) * kSlab + lane * 8 + i] = total[which][i];
    }
  __syncthreads();
  for (int i = int(threadIdx.x); i < 2 * kSlab; i += kThreads) {
    float sum = 0;
    for (int other = 0; other < kWarps; ++other) sum += shared[other * 2 * kSlab + i];
    const int which = i / kSlab, c = channel + i % kSlab;
    if (c < call.channels) to[which * call.channels + c] = sum;
  }
}

}  // namespace convoy::kernels::conv::products
