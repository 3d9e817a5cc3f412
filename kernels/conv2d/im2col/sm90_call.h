// Interface between the host code of the im2col engine and its kernels, which have one translation
// unit for each operation. The kernels are those of gemm/wgmma, with loaders that read the windows
// of a filter from NHWC tensors by TMA. Plain C++ except for __device__ marks.
#pragma once

#include "kernels/device/divider.h"
#include "kernels/device/kernel.h"
#include "kernels/gemm/wgmma/sm90_launch.h"

namespace convoy::kernels::conv {

// The image, row and column of a row of the im2col matrix.
struct Position {
  int n, i, j;
};
__device__ inline Position position_of(int row, const cuda::Divider& positions, const cuda::Divider& across) {
  const std::uint32_t n = positions(std::uint32_t(row)), inside = std::uint32_t(row) - n * positions.divisor;
  const std::uint32_t i = across(inside);
  return {int(n), int(i), int(inside - i * across.divisor)};
}

// The im2col operand: the pixel of each row, and the tap and channels of each block of columns. A
// block is one tap and up to 64 (tf32: 32) of its channels.
struct WindowLoad {
  cuda::Divider across, positions;  // across: positions in a row; positions: in an image
  cuda::Divider blocks, taps;       // blocks of channels in a tap; taps in a row of the filter
  int first[2], step[2], reach[2];  // from position and tap to pixel: h, w
  int images, columns;              // images of the tensor; blocks of columns in all
  bool matrix;                      // the windows are the pixels, and the map is that of a plain matrix

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
  // Moves on to the next index.
  __device__ void advance(Block& block) const {
    if (++block.channel_block < int(blocks.divisor)) return;
    block.channel_block = 0;
    if (++block.s < int(taps.divisor)) return;
    block.s = 0;
    ++block.r;
  }
};

// Offsets between packed groups; all zero for a single pack.
struct PackSteps {
  cuda::Divider tiles;                        // tiles of a pack
  int channels, filter_rows, filter_columns;  // of the images; of filters that are read with n contiguous
  __device__ int of(int tile) const { return int(tiles(std::uint32_t(tile))); }
};

// Index of the filter tap for tap (r, s) of the window. backward_data walks through taps backwards.
struct FilterTaps {
  int first, r_step, s_step;
  __device__ int at(int r, int s) const { return first + r * r_step + s * s_step; }
};

// The form in which boxes of the result are stored.
struct Placement {
  enum class Kind : int {
    matrix,              // rows of a plain matrix, or of one for each split
    positions,           // backward_data: every step-th pixel of an NHWC tensor
    filters,             // backward_weights: [K][taps][C], columns in blocks of 64 channels
    transposed_filters,  // backward_weights by narrow tiles: [taps][C][K], rows in blocks of 64 channels
  };
  Kind kind = Kind::matrix;
  cuda::Divider across, positions;       // of positions, and of a matrix in which some rows are gaps
  cuda::Divider blocks;                  // for filters and transposed_filters
  const StepControl* control = nullptr;  // sums of columns run over the valid samples
  int sample_rows = 0;
  __device__ int sum_rows(int m) const { return min(m, control->valid * sample_rows); }
};

struct Sm90ConvCall {
  int tile, blocks;
  gemm::Schedule schedule;
  CUtensorMap images, other, c;  // other: filters, or dy in backward_weights
  CUtensorMap half;              // transposed_filters: dy in boxes of half as many filters
  WindowLoad window;
  FilterTaps filter_taps;
  PackSteps packing;
  Placement placement;
  int m, n;
  const float* bias;
  bool relu, bf16;
  std::uint8_t* plain;
  const std::uint8_t* mask;  // of C's type, or with norm_operands one bit for each element
  float* sum_slots;
  CUtensorMap norm_operands[2];  // backward_data with input_norm: as NormStore::Parameters
  float* gradient;     // backward_weights in tf32, in place of c: [splits][m filters][taps][channels]
  int taps, channels;  // of gradient
};

// Returns whether a tile of kSm90Tiles has a kernel. `weights`: backward_weights, the only
// direction in which A has m contiguous.
constexpr bool has_kernel(const gemm::Sm90Tile& tile, gemm::Math math, bool weights) {
  if (tile.taps > 1)
    return weights == (gemm::depth_taps(tile) == 1) &&
           (math == gemm::Math::bf16 || (!weights && !gemm::is_narrow(tile)));
  return tile.cluster == 1 &&
         (gemm::suits_products(tile) || gemm::is_narrow(tile) || (math == gemm::Math::bf16 && weights));
}

// Tiles with a kernel that fuses input_norm. Excluded: tf32 256x64 (ping-pong needs more stages
// than fit) and the wide multi-tap tile (its stages, of A only, hold too few operands).
constexpr bool has_norm_kernel(const gemm::Sm90Tile& tile, gemm::Math math) {
  return has_kernel(tile, math, false) &&
         (math == gemm::Math::bf16 ? tile.taps == 1 || tile.columns == 64 : tile.rows <= 128);
}

// For forward, and for backward_data with transposed filters, which narrow tiles always use.
void sm90_conv_forward(const Sm90ConvCall& call, cudaStream_t stream);
// Also sums the columns of y.
void sm90_conv_forward_sums(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_forward_sums_tf32(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_forward_tf32(const Sm90ConvCall& call, cudaStream_t stream);
// For backward_data with filters as they are.
void sm90_conv_backward_data(const Sm90ConvCall& call, cudaStream_t stream);
// Writes 0 where the mask is not above 0.
void sm90_conv_backward_data_mask(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_backward_data_mask_tf32(const Sm90ConvCall& call, cudaStream_t stream);
// Writes g of a batch norm, and its sums.
void sm90_conv_backward_data_norm(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_backward_data_norm_tf32(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_backward_weights(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_backward_weights_tf32(const Sm90ConvCall& call, cudaStream_t stream);

}  // namespace convoy::kernels::conv
