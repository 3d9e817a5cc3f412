// The interface between the host code of the im2col engine and its kernels. The kernels are those
// of gemm/wgmma, with loaders that read the windows of a filter from NHWC tensors by TMA.
#pragma once

#include "kernels/device/cuda_tensor_map.h"
#include "kernels/device/divider.h"
#include "kernels/device/kernel.h"
#include "kernels/gemm/wgmma/sm90_launch.h"

namespace convoy::kernels::conv {

// The output position (image, row, column) to which a row of the im2col matrix belongs.
struct Position {
  int n, i, j;
};
__device__ inline Position position_of(int row, const cuda::Divider& positions, const cuda::Divider& across) {
  const std::uint32_t n = positions(std::uint32_t(row)), inside = std::uint32_t(row) - n * positions.divisor;
  const std::uint32_t i = across(inside);
  return {int(n), int(i), int(inside - i * across.divisor)};
}

// Translates a row of the im2col matrix to a pixel, and a block of its columns to a tap and
// channels. A block of columns is one tap and up to 64 channels, or 32 in tf32 and in tiles with
// boxes of 32 channels (gemm::Channels32).
struct WindowLoad {
  // `across` divides by the positions in a row, and `positions` by the positions in an image.
  cuda::Divider across, positions;
  // `blocks` divides by the blocks of channels in a tap, and `taps` by the taps in a filter's row.
  cuda::Divider blocks, taps;
  // For height and width: output position i reads, through tap r, the pixel first + step * i +
  // reach * r.
  int first[2], step[2], reach[2];
  int images, columns;  // how many images there are, and how many blocks of columns in all taps
  // True if the windows are simply all pixels, so that TMA reads them by the map of a plain matrix.
  bool matrix;

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
  // Moves on to the next block of columns.
  __device__ void advance(Block& block) const {
    if (++block.channel_block < int(blocks.divisor)) return;
    block.channel_block = 0;
    if (++block.s < int(taps.divisor)) return;
    block.s = 0;
    ++block.r;
  }
};

// The steps from one pack of groups (group_packing.h) to the next. All are zero if there is only
// one pack.
struct PackSteps {
  cuda::Divider tiles;  // divides by the tiles of a pack
  // Steps in channels of the images, and in rows and columns of the filters. The last two are 0
  // unless backward_data reads the filters themselves and not a transposed copy.
  int channels, filter_rows, filter_columns;
  __device__ int of(int tile) const { return int(tiles(std::uint32_t(tile))); }
};

// Translates tap (r, s) of the window to a tap of the filter. backward_data reads the taps in
// reverse order.
struct FilterTaps {
  int first, r_step, s_step;
  __device__ int at(int r, int s) const { return first + r * r_step + s * s_step; }
};

// Says where TMA stores a box (64 rows by 128 bytes) of a tile.
struct StoreTarget {
  enum class Kind : int {
    matrix,     // rows of a plain matrix; each split of k has a separate matrix
    positions,  // for backward_data: every step-th pixel of an NHWC tensor
    // For backward_weights: filters [K][taps][C] in memory. A row of the tile is a filter. The
    // columns of a tap are its channels, padded to blocks of 64 or, with Channels32, of 32.
    filters,
    // For backward_weights by narrow tiles or with input_affine: [taps][C][K] in memory. A column
    // of the tile is a filter. The rows of a tap are its channels, padded to blocks of 64.
    transposed_filters,
  };
  Kind kind = Kind::matrix;
  // `across` divides by the positions in a row, and `positions` by the positions in an image.
  cuda::Divider across, positions;
  cuda::Divider blocks;                  // divides by the blocks of channels in a tap
  int gap = 0;                           // how many positions at the end of a row belong to no output
  const StepControl* control = nullptr;  // column sums run over its `valid` samples
  int sample_rows = 0;
};

struct Sm90ConvCall {
  int tile, blocks;
  gemm::TileScheduler schedule;
  MemberMap images, other, c;  // other: the filters, or dy in backward_weights
  MemberMap half;              // for transposed_filters: dy in boxes of half the width
  WindowLoad window;
  FilterTaps filter_taps;
  PackSteps packing;
  StoreTarget target;
  int left_out_bytes;  // of a stage's filters: those of columns beyond n
  int m, n;
  const float* bias;
  bool relu, bf16;
  std::uint8_t* plain;
  const std::uint8_t* mask;    // a mask with elements of C's type; with norm_operands, a mask of bits
  void* sum_slots;             // float, but double for forward in tf32
  MemberMap norm_operands[2];  // for input_norm: the norm's input, and dy2
  // backward_weights in tf32 writes its result here and not through the map `c`. The layout is
  // [splits][m filters][taps][channels].
  float* gradient;
  int taps, channels;          // the extents of `gradient`
  gemm::AffineOperand affine;  // for input_affine
  MemberLayout members;
};

// Returns whether a tile of kSm90Tiles has a kernel. `weights` says whether the direction is
// backward_weights.
constexpr bool has_kernel(const gemm::Sm90Tile& tile, gemm::Math math, bool weights) {
  if (tile.channels32 != gemm::Channels32::none)
    return math == gemm::Math::bf16 && weights == (tile.channels32 == gemm::Channels32::as_columns);
  if (tile.taps > 1)
    return weights == (gemm::depth_taps(tile) == 1) &&
           (math == gemm::Math::bf16 || (!weights && !gemm::is_narrow(tile)));
  return tile.cluster == 1 &&
         (gemm::suits_products(tile) || gemm::is_narrow(tile) || (math == gemm::Math::bf16 && weights));
}

// Returns whether the tile has a kernel that fuses input_norm (Conv2dProblem). Some tf32 tiles have
// too few pipeline stages, or too small ones, for the operands of the norm, and so have tiles with
// boxes of 32 channels.
constexpr bool has_norm_kernel(const gemm::Sm90Tile& tile, gemm::Math math) {
  return has_kernel(tile, math, false) &&
         (math == gemm::Math::bf16
              ? tile.channels32 == gemm::Channels32::none && (tile.taps == 1 || tile.columns == 64)
              : tile.rows <= 128);
}

// Returns whether the tile has a kernel with input_affine (Conv2dProblem), in bf16.
constexpr bool has_affine_kernel(const gemm::Sm90Tile& tile, bool weights) {
  return has_kernel(tile, gemm::Math::bf16, weights) && tile.taps == 1 && !gemm::is_narrow(tile) &&
         tile.channels32 == gemm::Channels32::none && (tile.rows > 64 || weights);
}

// Runs forward, or backward_data with a transposed copy of the filters (transposes()).
void sm90_conv_forward(const Sm90ConvCall& call, cudaStream_t stream);
// Run forward and also write column sums of y.
void sm90_conv_forward_sums(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_forward_sums_tf32(const Sm90ConvCall& call, cudaStream_t stream);
// Does in tf32 what sm90_conv_forward() does in bf16.
void sm90_conv_forward_tf32(const Sm90ConvCall& call, cudaStream_t stream);
// Runs backward_data with the filters themselves and not with a transposed copy.
void sm90_conv_backward_data(const Sm90ConvCall& call, cudaStream_t stream);
// Run backward_data and apply the mask of input_relu (Conv2dProblem).
void sm90_conv_backward_data_mask(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_backward_data_mask_tf32(const Sm90ConvCall& call, cudaStream_t stream);
// Run backward_data and fuse input_norm (Conv2dProblem).
void sm90_conv_backward_data_norm(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_backward_data_norm_tf32(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_backward_weights(const Sm90ConvCall& call, cudaStream_t stream);
// Run forward and backward_weights with input_affine (Conv2dProblem).
void sm90_conv_forward_affine(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_forward_affine_sums(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_backward_weights_affine(const Sm90ConvCall& call, cudaStream_t stream);
void sm90_conv_backward_weights_tf32(const Sm90ConvCall& call, cudaStream_t stream);

}  // namespace convoy::kernels::conv
