// Kernels of depthwise convolutions on tensor cores (depthwise_products.h).
#pragma once

#include "kernels/conv2d/cuda/depthwise_planes.cuh"
#include "kernels/gemm/mma_sync/mma_instructions.cuh"

namespace convoy::kernels::conv::products {

// Fills the table of pairs of weights (Form::kPairs, depthwise_products.h), [channels][rows of the
// filter][kPairs].
template <class F, int kSlab>
__device__ __forceinline__ void fill_table(const Call& call, int channel, Word* table) {
  const auto* const weights = static_cast<const bf16*>(moved(call, call.operands.weights));
  const auto weight = [&](int c, int r, int s) -> Word {
    if (unsigned(s) >= unsigned(F::kFilter) || channel + c >= call.channels) return 0;
    const int tap = r * F::kFilter + s;
    const auto* at =
        weights + std::int64_t{channel + c} * F::kTaps + (call.flipped ? F::kTaps - 1 - tap : tap);
    return *reinterpret_cast<const std::uint16_t*>(at);
  };
  for (int i = int(threadIdx.x); i < kSlab * F::kFilter * F::kPairs; i += kThreads) {
    const int row = i / F::kPairs, entry = i - row * F::kPairs, c = row / F::kFilter,
              r = row - c * F::kFilter;
    const int s = F::kFirst + entry - 1;
    table[i] = entry == 0 ? 0 : weight(c, r, s) | weight(c, r, s + F::kNextTap) << 16;
  }
}

// The outputs of one channel that a lane holds in registers: [matrix][row of a patch][accumulator
// of mma.sync]. The two matrices are two sets of 16 patches. In a transposed convolution, they are
// the two halves of the columns of 16 patches.
using Results = float[2][kPatchRows][4];

template <class F>
__device__ __forceinline__ void multiply_channel(const Call& call, const bf16* plane, const Word* table,
                                                 const int (&input)[2],
                                                 const int (&entry)[F::kInputMatrices][F::kOutputMatrices][2],
                                                 Results& result) {
  Word weight[F::kFilter][F::kInputMatrices][F::kOutputMatrices][2];
#pragma unroll
  for (int r = 0; r < F::kFilter; ++r)
#pragma unroll
    for (int step = 0; step < F::kInputMatrices; ++step)
#pragma unroll
      for (int part = 0; part < F::kOutputMatrices; ++part)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          weight[r][step][part][half] = table[r * F::kPairs + entry[step][part][half]];
#pragma unroll
  for (int m = 0; m < 2 / F::kOutputMatrices; ++m) {
    if (16 * m >= call.tiling.patches()) break;
#pragma unroll
    for (int i = 0; i < F::kInputRows; ++i)
#pragma unroll
      for (int step = 0; step < F::kInputMatrices; ++step) {
        Word pixels[4];
        gemm::load_matrices<false>(pixels, plane + input[m] + i * call.input.pitch + 16 * step);
#pragma unroll
        for (int a = 0; a < kPatchRows; ++a) {
          const int r = F::tap(i, a);
          if (r < 0 || r >= F::kFilter) continue;
#pragma unroll
          for (int part = 0; part < F::kOutputMatrices; ++part)
            gemm::multiply_tile<bf16>(result[m + part][a], pixels, weight[r][step][part][0],
                                      weight[r][step][part][1]);
        }
      }
  }
}

// Writes a lane's outputs of one channel to the plane of this channel.
template <class F>
__device__ __forceinline__ void store_channel(const Call& call, const Results& result,
                                              const int (&output)[2][2], Word* plane) {
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (output[F::kOutputMatrices == 2 ? 0 : m][half] < 0) continue;
      Word* const to =
          plane + output[F::kOutputMatrices == 2 ? 0 : m][half] / 2 + (F::kOutputMatrices == 2 ? 4 * m : 0);
#pragma unroll
      for (int a = 0; a < kPatchRows; ++a) {
        float value[2] = {result[m][a][2 * half], result[m][a][2 * half + 1]};
        if (call.operands.relu) value[0] = cuda::rectified(value[0]), value[1] = cuda::rectified(value[1]);
        cuda::store_pack(reinterpret_cast<bf16*>(to + a * call.output.pitch / 2), cuda::pack_of<bf16>(value));
      }
    }
}

// Computes forward and backward_data of a depthwise convolution.
template <class F, int kSlab, bool sums>
__global__ void __launch_bounds__(kThreads, 3) depthwise_product(const __grid_constant__ Call call) {
  extern __shared__ float4 dynamic[];
  constexpr int kOwned = kSlab / kWarps;  // the channels of a warp
  auto* const planes = reinterpret_cast<Word*>(dynamic);
  Word* const table = planes + call.words_of(call.input);
  const int slab = int(blockIdx.x) % call.slabs, first = int(blockIdx.x) / call.slabs;
  const int channel = slab * kSlab;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  fill_table<F, kSlab>(call, channel, table);
  // This lane's offsets. It reads inputs at `input` in a plane, for each set of 16 patches. It
  // reads pairs of weights at `entry` in a row of the table. It writes outputs at `output` in a
  // plane, for two patches of each set; -1 means that there is no such patch.
  int input[2], entry[F::kInputMatrices][F::kOutputMatrices][2], output[2][2];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    input[m] = patch_offset(call.tiling, call.input, 16 * m + lane % 16, F::kRowStep, F::kColumnStep) +
               lane / 16 * 8;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int patch = 16 * m + 8 * half + lane / 4;
      output[m][half] =
          patch >= call.tiling.patches()
              ? -1
              : patch_offset(call.tiling, call.output, patch, kPatchRows, F::kOutputColumns) + lane % 4 * 2;
    }
  }
#pragma unroll
  for (int step = 0; step < F::kInputMatrices; ++step)
#pragma unroll
    for (int part = 0; part < F::kOutputMatrices; ++part)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int tap = F::tap(16 * step + 8 * half + lane % 4 * 2, 8 * part + lane / 4) - F::kFirst;
        entry[step][part][half] = unsigned(tap) < unsigned(F::kPairs - 1) ? tap + 1 : 0;
      }
  float total[2][8] = {};
  const int valid = sums ? moved(call, call.operands.control)->valid : 0;

#pragma unroll 1
  for (int tile = first; tile < call.tiling.tiles(); tile += call.row_blocks) {
    const TilePlace place = place_of<F, kPatchRows, F::kOutputColumns>(call, call.tiling, tile);
    __syncthreads();  // all threads have finished the previous tile
    fill_planes<kSlab>(call, input_window<F>(call, place), channel, planes);
    __syncthreads();
#pragma unroll 1
    for (int c = warp * kOwned; c < (warp + 1) * kOwned; ++c) {
      if (channel + c >= call.channels) break;
      Word* const plane = planes + c * call.input.words + c / 8 * call.skew_words();
      const float bias =
          call.operands.bias == nullptr ? 0.0f : __ldg(moved(call, call.operands.bias) + channel + c);
      Results result;
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int a = 0; a < kPatchRows; ++a)
#pragma unroll
          for (int i = 0; i < 4; ++i) result[m][a][i] = bias;
      multiply_channel<F>(call, reinterpret_cast<const bf16*>(plane), table + c * F::kFilter * F::kPairs,
                          input, entry, result);
      __syncwarp();  // all lanes have read the inputs
      store_channel<F>(call, result, output, plane);
    }
    __syncthreads();
    drain_planes<F, kSlab, sums>(call, place, channel, planes, valid, total);
  }
  if constexpr (sums) {
    __syncthreads();
    store_totals<kSlab>(call, total, channel, reinterpret_cast<float*>(planes),
                        partials_of<float>(call) + std::int64_t{first} * 2 * call.channels);
  }
}

// Adds a tile's contribution to the filters' gradient in one channel: multiplies the tile's inputs
// by dy and adds the products to `sum`, [rows of the filter][input column, output column].
template <class F>
__device__ __forceinline__ void add_products(const Call& call, const bf16* input_plane, const bf16* dy_plane,
                                             const int (&input)[2], const int (&dy)[2],
                                             const Word (&there)[2][2],
                                             float (&sum)[F::kFilter][F::kInputMatrices][4]) {
#pragma unroll 1
  for (int m = 0; m < 2; ++m) {
    if (16 * m >= call.tiling.patches()) break;
    Word gradient[kPatchRows][2];
#pragma unroll
    for (int a = 0; a < kPatchRows; a += 2) {
      Word both[4];
      gemm::load_matrices<true>(both, dy_plane + dy[m] + a * call.output.pitch);
#pragma unroll
      for (int half = 0; half < 2; ++half)
        gradient[a][half] = both[half] & there[m][half],
        gradient[a + 1][half] = both[2 + half] & there[m][half];
    }
#pragma unroll
    for (int i = 0; i < F::kInputRows; ++i)
#pragma unroll
      for (int step = 0; step < F::kInputMatrices; ++step) {
        Word pixels[4];
        gemm::load_matrices<true>(pixels, input_plane + input[m] + i * call.input.pitch + 16 * step);
#pragma unroll
        for (int a = 0; a < kPatchRows; ++a) {
          const int r = F::tap(i, a);
          if (r < 0 || r >= F::kFilter) continue;
          gemm::multiply_tile<bf16>(sum[r][step], pixels, gradient[a][0], gradient[a][1]);
        }
      }
  }
}

// Computes partial sums of the filters' gradient. Each matrix product sums over patches and gives a
// matrix [input columns, output columns] for one row of the filter. Its elements [s + stride * j,
// j] belong to tap s of this row, and their sum over j is the gradient of the tap.
template <class F, int kSlab>
__global__ void __launch_bounds__(kThreads, 2) depthwise_product_gradient(const __grid_constant__ Call call) {
  extern __shared__ float4 dynamic[];
  constexpr int kOwned = kSlab / kWarps;
  auto* const planes = reinterpret_cast<Word*>(dynamic);
  Word* const dy_planes = planes + call.words_of(call.input);
  const int slab = int(blockIdx.x) % call.slabs, first = int(blockIdx.x) / call.slabs;
  const int channel = slab * kSlab;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  // `input` and `dy` are the offsets in the planes from which this lane reads, for each set of 16
  // patches. `there` is a mask that clears elements of dy whose patches do not exist.
  int input[2], dy[2];
  Word there[2][2];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    input[m] = patch_offset(call.tiling, call.input, 16 * m + lane % 8 + lane / 16 * 8, F::kRowStep,
                            F::kColumnStep) +
               lane / 8 % 2 * 8;
    dy[m] = patch_offset(call.tiling, call.output, 16 * m + lane % 16, kPatchRows, F::kOutputColumns) +
            lane / 16 * call.output.pitch;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int patch = 16 * m + 8 * half + lane % 4 * 2;
      there[m][half] = (patch < call.tiling.patches() ? 0x0000ffffu : 0u) |
                       (patch + 1 < call.tiling.patches() ? 0xffff0000u : 0u);
    }
  }
  float sum[kOwned][F::kFilter][F::kInputMatrices][4] = {};

#pragma unroll 1
  for (int tile = first; tile < call.tiling.tiles(); tile += call.row_blocks) {
    const TilePlace place = place_of<F, kPatchRows, F::kOutputColumns>(call, call.tiling, tile);
    __syncthreads();
    fill_planes<kSlab>(call, input_window<F>(call, place), channel, planes);
    fill_planes<kSlab>(call,
                       {static_cast<const bf16*>(moved(call, call.operands.dy)), call.output_h, call.output_w,
                        call.output_w, place, call.output},
                       channel, dy_planes);
    __syncthreads();
#pragma unroll
    for (int own = 0; own < kOwned; ++own) {
      const int c = warp * kOwned + own, skew = c / 8 * call.skew_words();
      if (channel + c >= call.channels) break;
      add_products<F>(call, reinterpret_cast<const bf16*>(planes + c * call.input.words + skew),
                      reinterpret_cast<const bf16*>(dy_planes + c * call.output.words + skew), input, dy,
                      there, sum[own]);
    }
  }
  // The planes are no longer needed. Each warp has a range of their memory for the sums of one of
  // its channels at a time: [rows of the filter][input columns][8 output columns].
  float* const own_sums = reinterpret_cast<float*>(planes) + warp * F::kFilter * F::kInputColumns * 8;
  __syncthreads();
#pragma unroll
  for (int own = 0; own < kOwned; ++own) {
    const int c = channel + warp * kOwned + own;
    __syncwarp();
#pragma unroll
    for (int r = 0; r < F::kFilter; ++r)
#pragma unroll
      for (int step = 0; step < F::kInputMatrices; ++step)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          own_sums[(r * F::kInputColumns + 16 * step + lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] =
              sum[own][r][step][i];
    __syncwarp();
    for (int tap = lane; tap < F::kTaps && c < call.channels; tap += 32) {
      const int r = tap / F::kFilter, s = tap - r * F::kFilter;
      float total = 0;
      for (int q = 0; q < 8; ++q) total += own_sums[(r * F::kInputColumns + s + F::kStride * q) * 8 + q];
      partials_of<float>(call)[(std::int64_t{first} * F::kTaps + tap) * call.channels + c] = total;
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
