// The shape of a tile of the wgmma kernel (sm90_kernel.cuh), how the warpgroups share it, and how
// its operands lie in shared memory. Device code, sm_90a only.
#pragma once

#include <algorithm>

#include "kernels/gemm/wgmma/sm90_launch.h"

namespace convoy::kernels::gemm {

enum class Consumers { cooperative, ping_pong };

template <Math math_, bool a_mn_major_, bool b_mn_major_, int rows_, int columns_, int cluster_,
          Consumers consumers_, int taps_ = 1, Channels32 channels32 = Channels32::none,
          bool affine_a_ = false>
struct TileConfig {
  static constexpr Math math = math_;
  static constexpr bool a_mn_major = a_mn_major_, b_mn_major = b_mn_major_;
  static constexpr int rows = rows_, columns = columns_, cluster = cluster_, taps = taps_;
  static constexpr bool ping_pong = consumers_ == Consumers::ping_pong;
  // Whether consumers read A into registers and apply an AffineOperand (sm90_affine.cuh).
  static constexpr bool affine_a = affine_a_;
  static constexpr int element_bytes = math == Math::bf16 ? 2 : 4;
  // A stage has as many values of k as fill a row of 128 bytes (TMA's 128-byte swizzle), or of 64
  // bytes (Channels32).
  static constexpr int depth_bytes = channels32 == Channels32::as_k ? 64 : 128;
  static constexpr int depth = depth_bytes / element_bytes;
  static constexpr int steps = depth_bytes / 32;  // wgmma instructions in a stage, each with 32 bytes of k
  // The bytes of a row of A and of B in shared memory. If m or n is contiguous, a row is part of a
  // box of `width` rows or columns of the tile.
  static constexpr int a_row_bytes = a_mn_major ? 128 : depth_bytes;
  static constexpr int b_row_bytes = channels32 == Channels32::as_columns ? 64
                                     : b_mn_major                         ? 128
                                                                          : depth_bytes;
  static constexpr int b_width = b_row_bytes / element_bytes;
  static constexpr int consumer_rows = ping_pong ? rows : rows / 2;
  static constexpr int row_blocks = consumer_rows / 64;
  // Tiles of 64 columns exchange A and B (`swapped`), and so compute C transposed. One product of
  // 64 x `rows` elements reads less shared memory than several products of 64 x 64 elements.
  static constexpr bool swapped = ping_pong && columns == 64 && rows > 64 && !affine_a;
  static constexpr int products = swapped ? 1 : row_blocks, product_columns = swapped ? rows : columns;

  // If n is contiguous: the number of TMA boxes of B, and the bytes of one box. The last box may be
  // only half used.
  static constexpr int column_boxes = (columns + b_width - 1) / b_width,
                       column_box_bytes = depth * b_row_bytes;
  // Several taps of a filter's row may share one TMA box of pixels (Sm90Tile::taps). Tap s then
  // reads the box from row s on. In gradients of weights these taps are columns of B. In other
  // products, the B of each tap is a stage of a second ring (TapRing).
  static constexpr bool taps_in_columns = taps > 1 && a_mn_major;
  static constexpr int k_taps = taps_in_columns ? 1 : taps;
  static constexpr bool has_tap_ring = k_taps > 1;
  // The distance in bytes from one box of B's columns to the next.
  static constexpr int b_leading = taps_in_columns ? b_row_bytes : column_box_bytes;
  static constexpr int loaded_a_bytes = (rows + k_taps - 1) * depth_bytes,
                       loaded_b_bytes =
                           taps_in_columns ? (depth + taps - 1) * b_row_bytes : columns * depth_bytes,
                       loaded_bytes = loaded_a_bytes + (has_tap_ring ? 0 : loaded_b_bytes);
  // If A's channels are k, a stage also has the scales and shifts of its channels.
  static constexpr int a_bytes = (loaded_a_bytes + 1023) / 1024 * 1024,
                       b_bytes = b_mn_major && !taps_in_columns ? column_boxes * column_box_bytes
                                                                : (loaded_b_bytes + 1023) / 1024 * 1024,
                       affine_bytes = affine_a && !a_mn_major ? 1024 : 0,
                       stage_bytes = a_bytes + (has_tap_ring ? 0 : b_bytes) + affine_bytes;
  // A staged box is a TMA box of C (64 rows of 128 bytes) in shared memory, before TMA stores it.
  static constexpr int staging_bytes = 64 * 128;
  static constexpr int box_columns = 128 / element_bytes;
  // Each consumer warpgroup has two staged boxes.
  static constexpr int store_bytes = 2 * 2 * staging_bytes;
  static constexpr int barrier_bytes = 256;
  // A block may have 227 KiB of shared memory, of which aligning the stages takes up to 1024 bytes.
  static constexpr int limit = 227 * 1024 - 1024;
  static constexpr int room = limit - store_bytes - barrier_bytes;
  static constexpr int stages = has_tap_ring ? 3 : room / stage_bytes;
  static constexpr int tap_stages = has_tap_ring ? std::min(9, (room - stages * stage_bytes) / b_bytes) : 0;
  static constexpr int shared_bytes =
      stages * stage_bytes + tap_stages * b_bytes + store_bytes + barrier_bytes + 1024;
  static constexpr int threads = 384;
  // With 160 registers per thread, a block of comm's copy_all_reduce.cu fits on the multiprocessor
  // next to a block of this kernel; with 168 it would not. When the kernel runs, the producer gives
  // most of its registers to the consumers.
  static constexpr int registers = 160, producer_registers = 32, consumer_registers = 224;
  static_assert(128 * producer_registers + 256 * consumer_registers <= threads * registers &&
                threads * registers + 128 * 32 <= 65536);
  static_assert(stages >= 3 && (stages + tap_stages) * 16 + 16 <= barrier_bytes);
  static_assert(!has_tap_ring || tap_stages >= 3);
  static_assert(!taps_in_columns || (b_mn_major && columns == taps * b_width));
  static_assert(consumer_rows % 64 == 0 && products * product_columns / 2 <= 128, "accumulators spill");
};

}  // namespace convoy::kernels::gemm
