// Kernels of depthwise convolutions on Hopper's tensor cores (depthwise_diagonal.h).
#pragma once

#include <algorithm>

#include "kernels/conv2d/cuda/depthwise_device.cuh"
#include "kernels/conv2d/cuda/depthwise_diagonal.h"
#include "kernels/device/cuda_sm90.cuh"
#include "kernels/gemm/mma_sync/mma_instructions.cuh"

namespace convoy::kernels::conv::diagonal {

using cuda::bf16;
using gemm::Word;

// Returns the address in shared memory of 8 channels of a pixel. `pixel` is the pixel's index in
// its box, which begins at address `box`. TMA swaps the 16-byte parts of pixels
// (CU_TENSOR_MAP_SWIZZLE_64B), so that the same channels of eight neighbours lie in different
// banks.
__device__ __forceinline__ Word address_of(Word box, int pixel, int group) {
  return box + Word(pixel * (kSlab * 2) + ((group ^ (pixel >> 1 & 3)) << 4));
}

// A patch: its image and its place in a row of patches.
struct Patch {
  int image, column;
  bool there;  // false for numbers beyond the last patch; then the fields are those of patch 0
};
__device__ __forceinline__ Patch patch_of(const Call& call, int index) {
  const int image = int(call.across(std::uint32_t(index)));
  if (image >= call.tiling.images) return {0, 0, false};
  return {image, index - image * call.tiling.across, true};
}
// Returns the index of a patch's first pixel in the input box or in the output box. The patch is in
// row `down` of patches.
template <class F>
__device__ __forceinline__ int input_pixel(const Call& call, const Patch& patch, int down) {
  return down * F::kRowStep * call.input.pitch + patch.image * call.input.columns +
         patch.column * F::kColumnStep;
}
template <class F>
__device__ __forceinline__ int output_pixel(const Call& call, const Patch& patch, int down) {
  return down * F::kRows * call.output.pitch + patch.image * call.output.columns + patch.column * F::kColumns;
}

// Loads the tiles of a block into two stages in turn.
template <class F>
class Tiles {
 public:
  // `full` are two barriers in shared memory. All threads of the block must call the constructor.
  __device__ Tiles(const Call& call, std::uint8_t* stages, std::uint64_t* full)
      : call_(call), stages_(stages), full_(full), tile_(row_block()) {
    if (threadIdx.x == 0) {
      for (int stage = 0; stage < 2; ++stage) sm90::barrier_init(full + stage, 1);
      sm90::barrier_init_fence();
      load(0, tile_);
      load(1, tile_ + call.row_blocks);
    }
    __syncthreads();
  }
  __device__ bool done() const { return tile_ >= call_.tiling.tiles(); }
  __device__ int channel() const { return int(blockIdx.x) % call_.slabs * kSlab; }
  // Returns the block's number among the blocks of its slab, which is also the number of its first
  // tile.
  __device__ int row_block() const { return int(blockIdx.x) / call_.slabs; }
  __device__ TilePlace place() const { return place_of(tile_); }
  // Waits for the tile's pixels, and returns their address in shared memory.
  __device__ Word wait() const {
    sm90::barrier_wait(full_ + turn_ % 2, turn_ / 2 % 2);
    return sm90::shared_address(stages_ + turn_ % 2 * call_.stage_bytes());
  }
  // Goes on to the next tile. All threads of the block must call it when all of them have read this
  // tile. Waits until the other blocks of the cluster have finished the tile before this one.
  __device__ void advance() {
    if (call_.cluster > 1) {
      if (turn_ > 0) sm90::cluster_wait();
      sm90::cluster_arrive();
    }
    if (threadIdx.x == 0) load(turn_ % 2, tile_ + 2 * call_.row_blocks);
    tile_ += call_.row_blocks, ++turn_;
  }
  // All threads must call it after the last tile.
  __device__ void finish() const {
    if (call_.cluster > 1 && turn_ > 0) sm90::cluster_wait();
  }

 private:
  __device__ TilePlace place_of(int tile) const {
    return conv::place_of<F, F::kRows, F::kColumns>(call_, call_.tiling, tile);
  }
  __device__ void load(int stage, int tile) const {
    if (tile >= call_.tiling.tiles()) return;
    const TilePlace place = place_of(tile);
    std::uint8_t* const to = stages_ + stage * call_.stage_bytes();
    const int row = F::input_origin(place.row, call_.padding[0]);
    const int column = F::input_origin(place.column, call_.padding[1]);
    const auto load_box = [&](const MemberMap& map, std::uint8_t* box, int x, int y) {
      sm90::load_4d(sm90::map_of(map.first, map.others, int(blockIdx.z)), box, full_ + stage, channel(), x,
                    place.sample, y);
    };
    sm90::barrier_expect(full_ + stage, call_.input.bytes() + (call_.reads_dy() ? call_.output.bytes() : 0));
    load_box(call_.input_map, to, column, row);
    if (call_.reads_dy()) load_box(call_.output_map, to + call_.input.room(), place.column, place.row);
  }

  const Call& call_;
  std::uint8_t* stages_;
  std::uint64_t* full_;
  int tile_, turn_ = 0;
};

// The diagonal matrices of weights of 8 channels, as a lane's operands of mma.sync: [tap in height]
// [output column of a patch][input column].
template <class F>
using Weights = Word[F::kFilter][F::kColumns][F::kInputColumns];

// Reads the weights of the 8 channels from `channel` on. A lane has two elements of a column of
// each matrix, of which at most one is on the diagonal.
template <class F>
__device__ __forceinline__ void load_weights(const Call& call, int channel, Weights<F>& weights) {
  const int lane = int(threadIdx.x) % 32, c = lane / 4;
  const auto* const from = static_cast<const std::uint16_t*>(moved(call, call.operands.weights)) +
                           std::int64_t{channel + c} * F::kTaps;
  const bool has_it = c / 2 == lane % 4 && channel + c < call.channels;
#pragma unroll
  for (int r = 0; r < F::kFilter; ++r)
#pragma unroll
    for (int part = 0; part < F::kColumns; ++part)
#pragma unroll
      for (int s = 0; s < F::kInputColumns; ++s) {
        const int across = F::tap(s, part), tap = r * F::kFilter + across;
        const bool valid = across >= 0 && across < F::kFilter;
        const Word weight = valid && has_it ? from[call.flipped ? F::kTaps - 1 - tap : tap] : 0;
        weights[r][part][s] = c % 2 == 0 ? weight : weight << 16;
      }
}

// The outputs of 16 patches in 8 channels: [row of a patch][column of a patch][a lane's registers].
template <class F>
using Results = float[F::kRows][F::kColumns][4];

// Multiplies the input pixels of 16 patches. `pixel` is this lane's: of patch lane % 16, plus 1 in
// the upper half of the lanes.
template <class F>
__device__ __forceinline__ void multiply(const Call& call, Word box, int pixel, int group,
                                         const Weights<F>& weights, Results<F>& results) {
  // The pixels of two columns begin at each of these addresses. Rows have a multiple of eight
  // pixels, so that the order of their 16-byte parts is the same in all rows.
  Word from[(F::kInputColumns + 1) / 2];
#pragma unroll
  for (int s = 0; s < F::kInputColumns; s += 2) from[s / 2] = address_of(box, pixel + s, group);
#pragma unroll
  for (int i = 0; i < F::kInputRows; ++i) {
#pragma unroll
    for (int s = 0; s < F::kInputColumns; s += 2) {
      Word pixels[4] = {};
      const bool both = s + 1 < F::kInputColumns;
      const Word address = from[s / 2] + Word(i * call.input.pitch * kSlab * 2);
      if (both)
        gemm::load_matrices<false>(pixels, address);
      else
        gemm::load_two_matrices<false>(reinterpret_cast<Word(&)[2]>(pixels), address);
#pragma unroll
      for (int a = 0; a < F::kRows; ++a) {
        const int r = F::tap(i, a);
        if (r < 0 || r >= F::kFilter) continue;
#pragma unroll
        for (int part = 0; part < F::kColumns; ++part)
          if (both)
            gemm::multiply_tile<bf16>(results[a][part], pixels, weights[r][part][s],
                                      weights[r][part][min(s + 1, F::kInputColumns - 1)]);
          else
            gemm::multiply_half_tile(results[a][part], reinterpret_cast<Word(&)[2]>(pixels),
                                     weights[r][part][s]);
      }
    }
  }
}

// The work of a kernel besides the convolution: none, batch norm's sums of y, or a mask on dx.
enum class Extra : std::uint8_t { none, sums, mask };

// A lane's sums of its two channels of y, and of their squares.
using Totals = float[2][2];

// Finishes the outputs of 16 patches and writes them to the output box. `set` is the number of the
// 16 patches in row `down` of patches. `first` is the tile's place.
template <class F, Extra extra>
__device__ __forceinline__ void finish(const Call& call, const TilePlace& first, int down, int set,
                                       int channel, int group, Results<F>& results, Word box, int valid,
                                       Totals& totals) {
  const int lane = int(threadIdx.x) % 32;
  if (call.operands.relu)
#pragma unroll
    for (auto& row : results)
#pragma unroll
      for (auto& column : row)
#pragma unroll
        for (float& value : column) value = cuda::rectified(value);
  const Patch written = patch_of(call, set * 16 + lane % 16);
  const int to = written.there ? output_pixel<F>(call, written, down) : call.output.pixels;
  const int pitch = written.there ? call.output.pitch : 0;
  // The lane's registers belong to patches lane / 4 and lane / 4 + 8, and to two channels from `c`
  // on.
  const int c = channel + 2 * (lane % 4);
  Patch mine[2] = {};
  const bf16* mask = nullptr;
  if constexpr (extra != Extra::none)
    for (int half = 0; half < 2; ++half) mine[half] = patch_of(call, set * 16 + half * 8 + lane / 4);
  if constexpr (extra == Extra::mask) mask = static_cast<const bf16*>(moved(call, call.operands.mask));
#pragma unroll
  for (int a = 0; a < F::kRows; ++a)
#pragma unroll
    for (int part = 0; part < F::kColumns; ++part) {
      Word words[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* const result = results[a][part] + 2 * half;
        float value[2] = {result[0], result[1]};
        const int sample = first.sample + mine[half].image, row = first.row + down * F::kRows + a;
        const int column = first.column + mine[half].column * F::kColumns + part;
        const bool inside = mine[half].there && sample < call.samples && row < call.output_h &&
                            column < call.output_w && c < call.channels;
        if constexpr (extra == Extra::mask)
          if (inside) {
            const float2 above = load_pair(mask + output_offset(call, sample, row, column) + c);
            value[0] = above.x > 0 ? value[0] : 0.0f, value[1] = above.y > 0 ? value[1] : 0.0f;
          }
        const cuda::Pack<bf16, 2> pack = cuda::pack_of<bf16>(value);
        words[half] = reinterpret_cast<const Word&>(pack);
        if constexpr (extra == Extra::sums)
          if (inside && sample < valid) {
            const float2 stored = floats_of(words[half]);
            totals[0][0] += stored.x, totals[0][1] += stored.y;
            totals[1][0] = fmaf(stored.x, stored.x, totals[1][0]);
            totals[1][1] = fmaf(stored.y, stored.y, totals[1][1]);
          }
      }
      sm90::stmatrix_x2(address_of(box, to + a * pitch + (written.there ? part : 0), group), words[0],
                        words[1]);
    }
}

// Adds up the sums of all lanes, and writes the block's partial sums of y and of its squares.
// `shared` has room for [kWarps][2][8] floats.
template <class F>
__device__ __forceinline__ void store_totals(const Call& call, const Tiles<F>& tiles, Totals& totals,
                                             float* shared) {
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int which = 0; which < 2; ++which)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      for (int other = 16; other >= 4; other /= 2)
        totals[which][i] += __shfl_xor_sync(~0u, totals[which][i], other);
      if (lane < 4) shared[(warp * 2 + which) * 8 + lane * 2 + i] = totals[which][i];
    }
  __syncthreads();
  const int which = int(threadIdx.x) / kSlab, c = int(threadIdx.x) % kSlab, channel = tiles.channel() + c;
  if (which >= 2 || channel >= call.channels) return;
  float sum = 0;
  for (int other = c / 8; other < kWarps; other += kGroups) sum += shared[(other * 2 + which) * 8 + c % 8];
  partials_of<float>(call)[(std::int64_t{tiles.row_block()} * 2 + which) * call.channels + channel] = sum;
}

__device__ __forceinline__ std::uint8_t* aligned_memory() {
  extern __shared__ std::uint8_t unaligned[];
  return unaligned + (-sm90::shared_address(unaligned) & 1023u);
}

// Computes forward and backward_data.
template <class F, Extra extra>
__global__ void __launch_bounds__(kThreads, 2) depthwise_diagonal(const __grid_constant__ Call call) {
  __shared__ std::uint64_t full[2];
  std::uint8_t* const stages = aligned_memory();
  std::uint8_t* const staged = stages + 2 * call.stage_bytes();
  const Word staged_address = sm90::shared_address(staged);
  Tiles<F> tiles(call, stages, full);
  const int lane = int(threadIdx.x) % 32, group = int(threadIdx.x) / 32 % kGroups;
  const int channel = tiles.channel() + group * 8, sets = call.sets();
  Weights<F> weights;
  load_weights<F>(call, channel, weights);
  float bias[2] = {};
  if (call.operands.bias != nullptr)
    for (int i = 0; i < 2; ++i)
      if (const int c = channel + 2 * (lane % 4) + i; c < call.channels)
        bias[i] = __ldg(moved(call, call.operands.bias) + c);
  Totals totals = {};
  const int valid = extra == Extra::sums ? moved(call, call.operands.control)->valid : 0;

#pragma unroll 1
  for (; !tiles.done(); tiles.advance()) {
    const TilePlace place = tiles.place();
    const Word box = tiles.wait();
    // Before the output box is overwritten, TMA must have read it.
    if (threadIdx.x == 0) sm90::store_wait_read<0>();
    __syncthreads();
    // The two warps of a group share the sets of patches.
    int down = 0, set = int(threadIdx.x) / 32 / kGroups;
#pragma unroll 1
    while (true) {
      for (; set >= sets; set -= sets) ++down;
      if (down >= call.tiling.down) break;
      const int pixel = input_pixel<F>(call, patch_of(call, set * 16 + lane % 16), down) + lane / 16;
      Results<F> results;
#pragma unroll
      for (int a = 0; a < F::kRows; ++a)
#pragma unroll
        for (int part = 0; part < F::kColumns; ++part)
#pragma unroll
          for (int i = 0; i < 4; ++i) results[a][part][i] = bias[i % 2];
      multiply<F>(call, box, pixel, group, weights, results);
      finish<F, extra>(call, place, down, set, channel, group, results, staged_address, valid, totals);
      set += kWarps / kGroups;
    }
    sm90::async_proxy_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
      sm90::store_4d(sm90::map_of(call.output_map.first, call.output_map.others, int(blockIdx.z)), staged,
                     tiles.channel(), place.column, place.sample, place.row);
      sm90::store_commit();
    }
  }
  tiles.finish();
  if (threadIdx.x == 0) sm90::store_wait_read<0>();
  if constexpr (extra == Extra::sums) {
    __syncthreads();
    store_totals(call, tiles, totals, reinterpret_cast<float*>(stages));
  }
}

// A lane's sums for the gradient of `rows` rows of the filters: [row][pair of columns][registers].
// The rows of a product are 8 channels at a tap and the same channels at the next tap in width. Its
// columns are the channels of dy.
template <class F, int rows>
using TapSums = float[rows][(F::kInputColumns + 1) / 2][4];

// Adds the products of 16 patches to the sums of the filters' rows from `first` on. `pixel` is this
// lane's input pixel: of patch lane % 8 or that plus 8, at the first or the second column.
// `dy_pixel` is the first pixel of dy in patch lane % 16.
template <class F, int first, int rows>
__device__ __forceinline__ void add_products(const Call& call, Word box, int pixel, Word dy_box, int dy_pixel,
                                             int set, int group, TapSums<F, rows>& sum) {
  // Clear dy of patches that do not exist.
  Word there[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int patch = set * 16 + half * 8 + int(threadIdx.x) % 4 * 2;
    const int patches = call.tiling.across * call.tiling.images;
    there[half] = (patch < patches ? 0x0000ffffu : 0u) | (patch + 1 < patches ? 0xffff0000u : 0u);
  }
  Word gradient[F::kRows][2];
#pragma unroll
  for (int a = 0; a < F::kRows; ++a) {
    gemm::load_two_matrices<true>(gradient[a], address_of(dy_box, dy_pixel + a * call.output.pitch, group));
    gradient[a][0] &= there[0], gradient[a][1] &= there[1];
  }
  constexpr int kPairs = (F::kInputColumns + 1) / 2;
  Word from[kPairs];
#pragma unroll
  for (int pair = 0; pair < kPairs; ++pair) from[pair] = address_of(box, pixel + 2 * pair, group);
#pragma unroll
  for (int i = first; i < F::kInputRows - (F::kFilter - first - rows); ++i)
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      Word pixels[4];
      gemm::load_matrices<true>(pixels, from[pair] + Word(i * call.input.pitch * kSlab * 2));
#pragma unroll
      for (int a = 0; a < F::kRows; ++a) {
        const int r = F::tap(i, a) - first;
        if (r < 0 || r >= rows) continue;
        gemm::multiply_tile<bf16>(sum[r][pair], pixels, gradient[a][0], gradient[a][1]);
      }
    }
}

// Computes the sums of the filters' rows from `first` on over a block's tiles, and writes the
// diagonals of the products to `to`, [taps][8]. A warp takes every `step`th set of patches.
template <class F, int first, int rows, int step>
__device__ __forceinline__ void add_tiles(const Call& call, Tiles<F>& tiles, int first_set, float* to) {
  const int lane = int(threadIdx.x) % 32, group = int(threadIdx.x) / 32 % kGroups, sets = call.sets();
  // The warps of a block may call different instances of this function, where __syncthreads() would
  // not be allowed.
  const auto sync = [] { sm90::named_barrier_sync(1, kThreads); };
  TapSums<F, rows> sum = {};
#pragma unroll 1
  for (; !tiles.done(); tiles.advance()) {
    const Word box = tiles.wait(), dy_box = box + Word(call.input.room());
    int down = 0, set = first_set;
#pragma unroll 1
    while (true) {
      for (; set >= sets; set -= sets) ++down;
      if (down >= call.tiling.down) break;
      const Patch reads = patch_of(call, set * 16 + lane % 8 + lane / 16 * 8);
      const Patch reads_dy = patch_of(call, set * 16 + lane % 16);
      add_products<F, first, rows>(call, box, input_pixel<F>(call, reads, down) + lane / 8 % 2, dy_box,
                                   output_pixel<F>(call, reads_dy, down), set, group, sum);
      set += step;
    }
    sync();
  }
  tiles.finish();
  sync();
  const int c = lane / 4;
  if (c / 2 != lane % 4) return;
#pragma unroll
  for (int r = 0; r < rows; ++r)
#pragma unroll
    for (int s = 0; s < F::kFilter; ++s)
      to[((first + r) * F::kFilter + s) * 8 + c] =
          c % 2 == 0 ? sum[r][s / 2][s % 2 * 2] : sum[r][s / 2][s % 2 * 2 + 1];
}

// Computes partial sums of the filters' gradient. The two warps of a group share the sets of
// patches. With 7x7, they share the rows of the filter instead, since the sums of all rows would
// leave registers for only one block on a multiprocessor.
template <class F>
__global__ void __launch_bounds__(kThreads, 2)
    depthwise_diagonal_gradient(const __grid_constant__ Call call) {
  __shared__ std::uint64_t full[2];
  std::uint8_t* const stages = aligned_memory();
  Tiles<F> tiles(call, stages, full);
  constexpr int kParts = kWarps / kGroups, kFirstRows = (F::kFilter + 1) / 2;
  constexpr bool kSharesFilter = F::kFilter == 7;
  const int part = int(threadIdx.x) / 32 / kGroups;
  // After the last tile, the stages get the diagonals of the sums, [parts][groups][taps][8].
  auto* const diagonals = reinterpret_cast<float*>(stages);
  float* const own = diagonals + int(threadIdx.x) / 32 % (kSharesFilter ? kGroups : kWarps) * F::kTaps * 8;
  if constexpr (!kSharesFilter)
    add_tiles<F, 0, F::kFilter, kParts>(call, tiles, part, own);
  else if (part == 0)
    add_tiles<F, 0, kFirstRows, 1>(call, tiles, 0, own);
  else
    add_tiles<F, kFirstRows, F::kFilter - kFirstRows, 1>(call, tiles, 0, own);
  __syncthreads();
  const int channel = tiles.channel();
  for (int i = int(threadIdx.x); i < F::kTaps * kSlab; i += kThreads) {
    const int tap = i / kSlab, c = i % kSlab;
    if (channel + c >= call.channels) continue;
    float total = 0;
    for (int of = 0; of < (kSharesFilter ? 1 : kParts); ++of)
      total += diagonals[((of * kGroups + c / 8) * F::kTaps + tap) * 8 + c % 8];
    partials_of<float>(
        call)[(std::int64_t{tiles.row_block()} * F::kTaps + tap) * call.channels + channel + c] = total;
  }
}

using Kernel = void (*)(Call);

template <class F>
Kernel kernel_with_extra(const Call& call, bool sums) {
  return call.operands.mask != nullptr ? depthwise_diagonal<F, Extra::mask>
         : sums                        ? depthwise_diagonal<F, Extra::sums>
                                       : depthwise_diagonal<F, Extra::none>;
}

template <int filter>
Kernel kernel_of(const Call& call, bool sums) {
  using One = Form<filter, 1, false>;
  using Two = Form<filter, 2, false>;
  if (call.direction == Direction::backward_weights)
    return call.stride == 1 ? depthwise_diagonal_gradient<One> : depthwise_diagonal_gradient<Two>;
  if (call.transposed) return kernel_with_extra<Form<filter, 2, true>>(call, sums);
  return call.stride == 2 ? kernel_with_extra<Two>(call, sums) : kernel_with_extra<One>(call, sums);
}

template <int filter>
void start(const Call& call, bool sums, cudaStream_t stream) {
  const Kernel kernel = kernel_of<filter>(call, sums);
  // The same limit for all calls, since other threads may launch the kernel between these lines.
  CONVOY_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostShared));
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {unsigned(call.cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = call.grid(), config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = std::size_t(call.shared_bytes());
  config.stream = stream;
  config.attrs = &attribute, config.numAttrs = 1;
  CONVOY_CUDA(cudaLaunchKernelEx(&config, kernel, call));
}

}  // namespace convoy::kernels::conv::diagonal
