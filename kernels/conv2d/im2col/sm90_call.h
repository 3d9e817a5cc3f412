// Between the im2col engine's host code and its kernels, one translation unit per operation: the wgmma rung's kernels with
// loaders that cut the windows of a filter out of NHWC tensors by the copy engine. Plain C++ but for the marks of device
// functions.
#pragma once

#include "kernels/device/divider.h"
#include "kernels/device/kernel.h"
#include "kernels/gemm/wgmma/sm90_launch.h"

namespace convoy::kernels::conv {

// Image, row and place in it of a row of the im2col matrix, of so many positions an image and a row.
struct Position {
  int n, i, j;
};
__device__ inline Position position_of(int row, const cuda::Divider& positions, const cuda::Divider& across) {
  const std::uint32_t n = positions(std::uint32_t(row)), inside = std::uint32_t(row) - n * positions.divisor;
  const std::uint32_t i = across(inside);
  return {int(n), int(i), int(inside - i * across.divisor)};
}

// The im2col operand: where a row's position lies in the tensor, and what a block of its columns reads. A block is one
// tap and up to 64 (tf32: 32) of its channels.
struct WindowLoad {
  cuda::Divider across, positions;  // positions of a row and of an image
  cuda::Divider blocks, taps;       // blocks of channels a tap, taps of a filter's row
  int first[2], step[2], reach[2];  // position and tap to pixel: h, w
  int images, columns;              // of the tensor; blocks of columns in all
  bool matrix;                      // the windows are the pixels: the map is that of a plain matrix of them

  struct Pixel {
    int n, h, w;
  };
  __device__ Pixel pixel(int row) const {
    const Position at = position_of(row, positions, across);
    return {at.n, at.i * step[0] + first[0], at.j * step[1] + first[1]};
  }
  struct Block {
    int channel_block, r, s;
  };
  __device__ Block block(int index) const {
    const std::uint32_t tap = blocks(std::uint32_t(index)), r = taps(tap);
    return {index - int(tap * blocks.divisor), int(r), int(tap - r * taps.divisor)};
  }
  // To the next index.
  __device__ void advance(Block& block) const {
    if (++block.channel_block < int(blocks.divisor)) return;
    block.channel_block = 0;
    if (++block.s < int(taps.divisor)) return;
    block.s = 0;
    ++block.r;
  }
};

// From one bundle of groups to the next; where there is but one these are zero, and what of() says does not matter.
struct BundleSteps {
  cuda::Divider tiles;                        // of a bundle
  int channels, filter_rows, filter_columns;  // of the images, and of filters that are read n contiguous
  __device__ int of(int tile) const { return int(tiles(std::uint32_t(tile))); }
};

// The filters' tap that meets tap (r, s) of the window: backward_data walks through them backwards.
struct FilterTaps {
  int first, r_step, s_step;
  __device__ int at(int r, int s) const { return first + r * r_step + s * s_step; }
};

// Where boxes of the result go.
struct Placement {
  enum class Kind : int {
    matrix,     // rows of a plain matrix, or of pieces of one
    positions,  // backward_data: every step-th pixel of an NHWC tensor
    filters,    // backward_weights: [K][taps][C], columns in blocks of 64 channels
    turned,     // backward_weights by narrow tiles: [taps][C][K], rows in blocks of 64 channels
  };
  Kind kind = Kind::matrix;
  cuda::Divider across, positions;       // positions, and matrix where some rows are none
  cuda::Divider blocks;                  // filters, turned
  const StepControl* control = nullptr;  // sums of columns run over its valid samples
  int sample_rows = 0;
  __device__ int sum_rows(int m) const { return min(m, control->valid * sample_rows); }
};

struct Sm90ConvCall {
  int tile, blocks;
  gemm::Schedule schedule;
  CUtensorMap images, other, c;  // other: filters, or dy in backward_weights
  CUtensorMap half;              // turned: dy in boxes of half as many filters
  WindowLoad window;
  FilterTaps filter_taps;
  BundleSteps bundles;
  Placement placement;
  int m, n;
  const float* bias;
  bool relu, bf16;
  std::uint8_t* plain;
  const std::uint8_t* mask;  // of C's type; with norm_operands a bit an element
  float* sum_slots;
  CUtensorMap norm_operands[2];  // backward_data with input_norm: as NormStore::Parameters
  float* gradient;     // backward_weights in tf32, in place of c: [pieces of k][m filters][taps][channels]
  int taps, channels;  // its
};

// Of a tile of kSm90Tiles. weights: backward_weights, the one direction whose A has m contiguous.
constexpr bool has_kernel(const gemm::Sm90Tile& tile, gemm::Math math, bool weights) {
  if (tile.taps > 1)
    return weights == (gemm::depth_taps(tile) == 1) &&
           (math == gemm::Math::bf16 || (!weights && !gemm::is_narrow(tile)));
  return tile.cluster == 1 &&
         (gemm::suits_products(tile) || gemm::is_narrow(tile) || (math == gemm::Math::bf16 && weights));
}

// Of those backward_data with input_norm has: all but 256x64 in tf32, whose consumers take turns, as the ring would have
// to hold a tile's operands beside a stage of the product (NormStore), more stages than it has; and but the wide tile of
// several taps, whose stages, A alone, hold few operands.
constexpr bool has_norm_kernel(const gemm::Sm90Tile& tile, gemm::Math math) {
  return has_kernel(tile, math, false) &&
         (math == gemm::Math::bf16 ? tile.taps == 1 || tile.columns == 64 : tile.rows <= 128);
}

// forward, and backward_data where the filters have been transposed: always for narrow tiles.
void sm90_conv_forward(const Sm90ConvCall& call, cudaStream_t stream);
// With sums of y's columns.
void sm90_conv_forward_sums(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_forward_sums_tf32(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_forward_tf32(const Sm90ConvCall& call, cudaStream_t stream);
// backward_data with the filters as they are.
void sm90_conv_backward_data(const Sm90ConvCall& call, cudaStream_t stream);
// The result zero where the mask is not above zero.
void sm90_conv_backward_data_mask(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_backward_data_mask_tf32(const Sm90ConvCall& call, cudaStream_t stream);
// The result g of a batch norm, with its sums.
void sm90_conv_backward_data_norm(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_backward_data_norm_tf32(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_backward_weights(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_backward_weights_tf32(const Sm90ConvCall& call, cudaStream_t stream);

}  // namespace convoy::kernels::conv
