// Device code of depthwise_products.h.
#pragma once

#include "kernels/conv2d/cuda/depthwise_products.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/gemm/mma_sync/mma_instructions.cuh"

namespace convoy::kernels::conv::products {

using cuda::bf16;
using gemm::Word;

// A tile of the problem: its first sample and far pixel.
struct Place {
  int sample, row, column;
};
__device__ __forceinline__ Place place_of(const Call& call, int far_columns, int tile) {
  const int rest = tile / call.blocks_across, batch = rest / call.blocks_down;
  const int odd = call.transposed ? 1 : 0;  // the first tile may begin in the padding
  return {batch * call.images,
          (rest - batch * call.blocks_down) * call.down * kPatchRows - (odd & call.padding[0]),
          (tile - rest * call.blocks_across) * call.across * far_columns - (odd & call.padding[1])};
}
template <class F>
__device__ __forceinline__ int near_origin(int far, int padding) {
  return F::kTransposed ? (far + padding) / 2 - (F::kFilter - 1) / 2 : far * F::kStride - padding;
}

// Pixels of a tensor: which image rows and columns a plane has.
struct Window {
  const bf16* from;
  int height, width, row_pixels;  // columns from `width` on are not needed
  int sample, row, column;
  cuda::Divider pairs, lines;
  int pitch_words;
};

template <class F>
__device__ __forceinline__ Window near_window(const Call& call, const Place& place) {
  const int column = near_origin<F>(place.column, call.padding[1]);
  return {static_cast<const bf16*>(cuda::of_member(call.near, call.members.stride)),
          call.near_h,
          min(call.near_w, column + call.near_columns),
          call.near_w,
          place.sample,
          near_origin<F>(place.row, call.padding[0]),
          column,
          call.near_pairs,
          call.near_lines,
          call.near_pitch / 2};
}

// Reads eight channels of a pixel, zeros outside the image.
__device__ __forceinline__ uint4 load_pixel(const bf16* at, bool inside) {
  return inside ? __ldg(reinterpret_cast<const uint4*>(at)) : uint4{0, 0, 0, 0};
}
// Pairs of neighbouring pixels of a channel, from pairs of channels of two pixels, and back.
__device__ __forceinline__ void exchange(Word a, Word b, Word& low, Word& high) {
  low = __byte_perm(a, b, 0x5410), high = __byte_perm(a, b, 0x7632);
}

// Copies a window to planes. A thread has eight channels of two neighbouring pixels at a time.
template <int kSlab>
__device__ __forceinline__ void fill_planes(const Call& call, const Window& window, int channel,
                                            int plane_words, Word* planes) {
  constexpr int kChunks = kSlab / 8, kAtOnce = 4, kStep = kThreads / kChunks;
  const int chunk = int(threadIdx.x) % kChunks, first = int(threadIdx.x) / kChunks;
  const int items = int(window.pairs.divisor * window.lines.divisor) * call.images;
  const bool there = channel + chunk * 8 < call.channels;
  const bf16* const from = window.from + channel + chunk * 8;
  Word* const to = planes + chunk * (8 * plane_words + call.skew_words());
#pragma unroll 1
  for (int item = first; item < items; item += kAtOnce * kStep) {
    uint4 pixel[kAtOnce][2];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const auto at = std::uint32_t(item + k * kStep), line = window.pairs(at), image = window.lines(line);
      const int h = window.row + int(line - image * window.lines.divisor);
      const int w = window.column + 2 * int(at - line * window.pairs.divisor);
      const int sample = window.sample + int(image);
      const bool inside =
          there && int(at) < items && unsigned(h) < unsigned(window.height) && sample < call.samples;
      const bf16* const source =
          from + ((std::int64_t{sample} * window.height + h) * window.row_pixels + w) * call.channels;
      pixel[k][0] = load_pixel(source, inside && unsigned(w) < unsigned(window.width));
      pixel[k][1] = load_pixel(source + call.channels, inside && unsigned(w + 1) < unsigned(window.width));
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const auto at = std::uint32_t(item + k * kStep), line = window.pairs(at);
      if (int(at) >= items) break;
      Word* const pair = to + int(line) * window.pitch_words + int(at - line * window.pairs.divisor);
      const Word a[4] = {pixel[k][0].x, pixel[k][0].y, pixel[k][0].z, pixel[k][0].w};
      const Word b[4] = {pixel[k][1].x, pixel[k][1].y, pixel[k][1].z, pixel[k][1].w};
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        Word low, high;
        exchange(a[c], b[c], low, high);
        pair[2 * c * plane_words] = low, pair[(2 * c + 1) * plane_words] = high;
      }
    }
  }
}

// The elements of a plane at which a patch begins: near or far. Patches without pixels begin where
// the first one does.
__device__ __forceinline__ int patch_offset(const Call& call, int patch, int rows, int pitch, int row_step,
                                            int column_step) {
  if (patch >= call.patches()) return 0;
  const int side = patch / call.across, down = side / call.images;
  const int column = patch - side * call.across, image = side - down * call.images;
  return (image * rows + down * row_step) * pitch + column * column_step;
}

// The words of the Toeplitz matrices: pairs of weights, [channels][filter's rows][F::kPairs].
template <class F, int kSlab>
__device__ __forceinline__ void fill_table(const Call& call, int channel, Word* table) {
  const auto* const weights = static_cast<const bf16*>(cuda::of_member(call.weights, call.members.stride));
  const auto weight = [&](int c, int r, int s) -> Word {
    if (unsigned(s) >= unsigned(F::kFilter) || channel + c >= call.channels) return 0;
    const int tap = r * F::kFilter + s;
    const auto* at =
        weights + std::int64_t{channel + c} * F::kTaps + (call.turned ? F::kTaps - 1 - tap : tap);
    return *reinterpret_cast<const std::uint16_t*>(at);
  };
  for (int i = int(threadIdx.x); i < kSlab * F::kFilter * F::kPairs; i += kThreads) {
    const int row = i / F::kPairs, entry = i - row * F::kPairs, c = row / F::kFilter,
              r = row - c * F::kFilter;
    const int s = F::kFirst + entry - 1;
    table[i] = entry == 0 ? 0 : weight(c, r, s) | weight(c, r, s + F::kNextTap) << 16;
  }
}

// The results of a channel: 16 patches each, or 16 patches with two matrices of far columns.
using Results = float[2][kPatchRows][4];

template <class F>
__device__ __forceinline__ void multiply_channel(const Call& call, const bf16* plane, const Word* table,
                                                 const int (&near)[2],
                                                 const int (&entry)[F::kSteps][F::kParts][2],
                                                 Results& result) {
  Word weight[F::kFilter][F::kSteps][F::kParts][2];
#pragma unroll
  for (int r = 0; r < F::kFilter; ++r)
#pragma unroll
    for (int step = 0; step < F::kSteps; ++step)
#pragma unroll
      for (int part = 0; part < F::kParts; ++part)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          weight[r][step][part][half] = table[r * F::kPairs + entry[step][part][half]];
#pragma unroll
  for (int m = 0; m < 2 / F::kParts; ++m) {
    if (16 * m >= call.patches()) break;
#pragma unroll
    for (int i = 0; i < F::kNearRows; ++i)
#pragma unroll
      for (int step = 0; step < F::kSteps; ++step) {
        Word pixels[4];
        gemm::load_matrices<false>(pixels, plane + near[m] + i * call.near_pitch + 16 * step);
#pragma unroll
        for (int a = 0; a < kPatchRows; ++a) {
          const int r = F::tap(i, a);
          if (r < 0 || r >= F::kFilter) continue;
#pragma unroll
          for (int part = 0; part < F::kParts; ++part)
            gemm::multiply_tile<bf16>(result[m + part][a], pixels, weight[r][step][part][0],
                                      weight[r][step][part][1]);
        }
      }
  }
}

// Writes the far pixels of a channel to its plane.
template <class F>
__device__ __forceinline__ void store_channel(const Call& call, const Results& result, const int (&far)[2][2],
                                              Word* plane) {
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (far[F::kParts == 2 ? 0 : m][half] < 0) continue;
      Word* const to = plane + far[F::kParts == 2 ? 0 : m][half] / 2 + (F::kParts == 2 ? 4 * m : 0);
#pragma unroll
      for (int a = 0; a < kPatchRows; ++a) {
        float value[2] = {result[m][a][2 * half], result[m][a][2 * half + 1]};
        if (call.relu) value[0] = cuda::rectified(value[0]), value[1] = cuda::rectified(value[1]);
        cuda::store_pack(reinterpret_cast<bf16*>(to + a * call.far_pitch / 2), cuda::pack_of<bf16>(value));
      }
    }
}

// Zeroes elements whose mask is not above zero.
__device__ __forceinline__ void apply_mask(const bf16* mask, Word (&pixel)[4]) {
  const cuda::Pack<bf16, 8> bits = cuda::load_pack<8>(mask);
  float value[8];
  cuda::unpack(bits, value);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (!(value[i] > 0)) pixel[i / 2] &= i % 2 == 0 ? 0xffff0000u : 0x0000ffffu;
}

// Copies the planes of results to the tensor, and adds up the valid samples' values and squares.
template <class F, int kSlab, bool sums>
__device__ __forceinline__ void drain_planes(const Call& call, const Place& place, int channel,
                                             const Word* planes, int valid, float (&total)[2][8]) {
  constexpr int kChunks = kSlab / 8, kStep = kThreads / kChunks;
  const int chunk = int(threadIdx.x) % kChunks, first = int(threadIdx.x) / kChunks;
  const int c = channel + chunk * 8;
  if (c >= call.channels) return;
  const int items = int(call.far_pairs.divisor * call.far_lines.divisor) * call.images;
  const Word* const from = planes + chunk * (8 * call.plane_words + call.skew_words());
#pragma unroll 2
  for (int item = first; item < items; item += kStep) {
    const auto at = std::uint32_t(item), line = call.far_pairs(at), image = call.far_lines(line);
    const int row = place.row + int(line - image * call.far_lines.divisor);
    const int pair = int(at - line * call.far_pairs.divisor), column = place.column + 2 * pair;
    const int sample = place.sample + int(image);
    if (unsigned(row) >= unsigned(call.far_h) || sample >= call.samples) continue;
    const Word* const word = from + int(line) * call.far_pitch / 2 + pair;
    Word pixel[2][4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      exchange(word[2 * k * call.plane_words], word[(2 * k + 1) * call.plane_words], pixel[0][k],
               pixel[1][k]);
    const std::int64_t offset =
        ((std::int64_t{sample} * call.far_h + row) * call.far_w + column) * call.channels + c;
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      if (unsigned(column + side) >= unsigned(call.far_w)) continue;
      const std::int64_t to = offset + side * call.channels;
      if (call.mask != nullptr)
        apply_mask(static_cast<const bf16*>(cuda::of_member(call.mask, call.members.stride)) + to,
                   pixel[side]);
      *reinterpret_cast<uint4*>(static_cast<bf16*>(cuda::of_member(call.far_out, call.members.stride)) +
                                to) = {pixel[side][0], pixel[side][1], pixel[side][2], pixel[side][3]};
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

// Adds the threads' sums and writes them to [2][channels] from `to` on. `shared` has the floats of
// all warps: [kWarps][2][kSlab].
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

// forward and backward_data.
template <class F, int kSlab, bool sums>
__global__ void __launch_bounds__(kThreads, 3) depthwise_product(const __grid_constant__ Call call) {
  extern __shared__ float4 dynamic[];
  constexpr int kOwned = kSlab / kWarps;  // channels of a warp
  auto* const planes = reinterpret_cast<Word*>(dynamic);
  Word* const table = planes + call.planes_words(call.plane_words);
  const int slab = int(blockIdx.x) % call.slabs, first = int(blockIdx.x) / call.slabs;
  const int channel = slab * kSlab;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  fill_table<F, kSlab>(call, channel, table);
  // The lane's row of the matrices of near pixels, its words of the filter's, its far pixels.
  int near[2], entry[F::kSteps][F::kParts][2], far[2][2];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    near[m] = patch_offset(call, 16 * m + lane % 16, call.near_rows, call.near_pitch, F::kNearRowStep,
                           F::kNearColumnStep) +
              lane / 16 * 8;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int patch = 16 * m + 8 * half + lane / 4;
      far[m][half] = patch >= call.patches() ? -1
                                             : patch_offset(call, patch, call.far_rows, call.far_pitch,
                                                            kPatchRows, F::kFarColumns) +
                                                   lane % 4 * 2;
    }
  }
#pragma unroll
  for (int step = 0; step < F::kSteps; ++step)
#pragma unroll
    for (int part = 0; part < F::kParts; ++part)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int tap = F::tap(16 * step + 8 * half + lane % 4 * 2, 8 * part + lane / 4) - F::kFirst;
        entry[step][part][half] = unsigned(tap) < unsigned(F::kPairs - 1) ? tap + 1 : 0;
      }
  float total[2][8] = {};
  const int valid = sums ? cuda::of_member(call.control, call.members.stride)->valid : 0;

#pragma unroll 1
  for (int tile = first; tile < call.tiles(); tile += call.row_blocks) {
    const Place place = place_of(call, F::kFarColumns, tile);
    __syncthreads();  // the planes may be overwritten, and the table is there
    fill_planes<kSlab>(call, near_window<F>(call, place), channel, call.plane_words, planes);
    __syncthreads();
#pragma unroll 1
    for (int c = warp * kOwned; c < (warp + 1) * kOwned; ++c) {
      if (channel + c >= call.channels) break;
      Word* const plane = planes + c * call.plane_words + c / 8 * call.skew_words();
      const float bias =
          call.bias == nullptr ? 0.0f : __ldg(cuda::of_member(call.bias, call.members.stride) + channel + c);
      Results result;
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int a = 0; a < kPatchRows; ++a)
#pragma unroll
          for (int i = 0; i < 4; ++i) result[m][a][i] = bias;
      multiply_channel<F>(call, reinterpret_cast<const bf16*>(plane), table + c * F::kFilter * F::kPairs,
                          near, entry, result);
      __syncwarp();  // all lanes have read the near pixels
      store_channel<F>(call, result, far, plane);
    }
    __syncthreads();
    drain_planes<F, kSlab, sums>(call, place, channel, planes, valid, total);
  }
  if constexpr (sums) {
    __syncthreads();
    store_totals<kSlab>(
        call, total, channel, reinterpret_cast<float*>(planes),
        cuda::of_member(call.partials, call.members.stride) + std::int64_t{first} * 2 * call.channels);
  }
}

// Adds a tile's products of near and far pixels of a channel: to [filter's rows][near, far column].
template <class F>
__device__ __forceinline__ void add_products(const Call& call, const bf16* near_plane, const bf16* far_plane,
                                             const int (&near)[2], const int (&far)[2],
                                             const Word (&there)[2][2],
                                             float (&sum)[F::kFilter][F::kSteps][4]) {
#pragma unroll 1
  for (int m = 0; m < 2; ++m) {
    if (16 * m >= call.patches()) break;
    Word dy[kPatchRows][2];
#pragma unroll
    for (int a = 0; a < kPatchRows; a += 2) {
      Word both[4];
      gemm::load_matrices<true>(both, far_plane + far[m] + a * call.far_pitch);
#pragma unroll
      for (int half = 0; half < 2; ++half)
        dy[a][half] = both[half] & there[m][half], dy[a + 1][half] = both[2 + half] & there[m][half];
    }
#pragma unroll
    for (int i = 0; i < F::kNearRows; ++i)
#pragma unroll
      for (int step = 0; step < F::kSteps; ++step) {
        Word pixels[4];
        gemm::load_matrices<true>(pixels, near_plane + near[m] + i * call.near_pitch + 16 * step);
#pragma unroll
        for (int a = 0; a < kPatchRows; ++a) {
          const int r = F::tap(i, a);
          if (r < 0 || r >= F::kFilter) continue;
          gemm::multiply_tile<bf16>(sum[r][step], pixels, dy[a][0], dy[a][1]);
        }
      }
  }
}

// backward_weights: partial sums of the filters' gradient. Patches are the inner extent of products
// [near columns, far columns]; a tap's gradient is the sum of their diagonal.
template <class F, int kSlab>
__global__ void __launch_bounds__(kThreads, 2) depthwise_product_gradient(const __grid_constant__ Call call) {
  extern __shared__ float4 dynamic[];
  constexpr int kOwned = kSlab / kWarps;
  auto* const planes = reinterpret_cast<Word*>(dynamic);
  Word* const far_planes = planes + call.planes_words(call.plane_words);
  const int slab = int(blockIdx.x) % call.slabs, first = int(blockIdx.x) / call.slabs;
  const int channel = slab * kSlab;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  // The lane's rows of the matrices, and which of the patches in its words of dy there are.
  int near[2], far[2];
  Word there[2][2];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    near[m] = patch_offset(call, 16 * m + lane % 8 + lane / 16 * 8, call.near_rows, call.near_pitch,
                           F::kNearRowStep, F::kNearColumnStep) +
              lane / 8 % 2 * 8;
    far[m] =
        patch_offset(call, 16 * m + lane % 16, call.far_rows, call.far_pitch, kPatchRows, F::kFarColumns) +
        lane / 16 * call.far_pitch;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int patch = 16 * m + 8 * half + lane % 4 * 2;
      there[m][half] =
          (patch < call.patches() ? 0x0000ffffu : 0u) | (patch + 1 < call.patches() ? 0xffff0000u : 0u);
    }
  }
  float sum[kOwned][F::kFilter][F::kSteps][4] = {};

#pragma unroll 1
  for (int tile = first; tile < call.tiles(); tile += call.row_blocks) {
    const Place place = place_of(call, F::kFarColumns, tile);
    __syncthreads();
    fill_planes<kSlab>(call, near_window<F>(call, place), channel, call.plane_words, planes);
    fill_planes<kSlab>(call,
                       {static_cast<const bf16*>(cuda::of_member(call.far_in, call.members.stride)),
                        call.far_h, call.far_w, call.far_w, place.sample, place.row, place.column,
                        call.far_pairs, call.far_lines, call.far_pitch / 2},
                       channel, call.far_plane_words, far_planes);
    __syncthreads();
#pragma unroll
    for (int own = 0; own < kOwned; ++own) {
      const int c = warp * kOwned + own, skew = c / 8 * call.skew_words();
      if (channel + c >= call.channels) break;
      add_products<F>(call, reinterpret_cast<const bf16*>(planes + c * call.plane_words + skew),
                      reinterpret_cast<const bf16*>(far_planes + c * call.far_plane_words + skew), near, far,
                      there, sum[own]);
    }
  }
  // The products of a channel: [filter's rows][near columns][8].
  constexpr int kNear = 16 * F::kSteps;
  float* const own_sums = reinterpret_cast<float*>(planes) + warp * F::kFilter * kNear * 8;
  __syncthreads();
#pragma unroll
  for (int own = 0; own < kOwned; ++own) {
    const int c = channel + warp * kOwned + own;
    __syncwarp();
#pragma unroll
    for (int r = 0; r < F::kFilter; ++r)
#pragma unroll
      for (int step = 0; step < F::kSteps; ++step)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          own_sums[(r * kNear + 16 * step + lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] =
              sum[own][r][step][i];
    __syncwarp();
    for (int tap = lane; tap < F::kTaps && c < call.channels; tap += 32) {
      const int r = tap / F::kFilter, s = tap - r * F::kFilter;
      float total = 0;
      for (int q = 0; q < 8; ++q) total += own_sums[(r * kNear + s + F::kStride * q) * 8 + q];
      cuda::of_member(call.partials,
                      call.members.stride)[(std::int64_t{first} * F::kTaps + tap) * call.channels + c] =
          total;
    }
  }
}

template <typename Kernel>
void start_kernel(Kernel kernel, const Call& call, cudaStream_t stream) {
  const auto bytes = int(call.shared_bytes());
  CONVOY_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  kernel<<<call.grid(), kThreads, std::size_t(bytes), stream>>>(call);
  CONVOY_CUDA(cudaGetLastError());
}

template <int filter>
void start(const Call& call, bool sums, cudaStream_t stream) {
  using One = Form<filter, 1, false>;
  using Two = Form<filter, 2, false>;
  if (call.direction == Direction::backward_weights) {
    if (call.stride == 1) return start_kernel(depthwise_product_gradient<One, 16>, call, stream);
    if constexpr (filter < 7) start_kernel(depthwise_product_gradient<Two, 16>, call, stream);
  } else if (call.transposed) {
    start_kernel(depthwise_product<Form<filter, 2, true>, 32, false>, call, stream);
  } else if (call.stride == 2) {
    start_kernel(sums ? depthwise_product<Two, 32, true> : depthwise_product<Two, 32, false>, call, stream);
  } else {
    start_kernel(sums ? depthwise_product<One, 32, true> : depthwise_product<One, 32, false>, call, stream);
  }
}

}  // namespace convoy::kernels::conv::products
