// The interface between the host code of the wgmma kernels and the kernels: tile shapes, the order
// of the work, expected times, and the arguments of a launch.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>

#include "kernels/device/cuda_tensor_map.h"
#include "kernels/device/divider.h"
#include "kernels/device/gpu_model.h"
#include "kernels/gemm/gemm.h"

namespace convoy::kernels::gemm {

// A TMA box of pixels has 64 channels in bf16. A layer with 32 channels fills only half of it: half
// of the products are zeros, and TMA takes longer for a row that lies partly outside the tensor. So
// there are tiles whose boxes have 32 channels, which are 64 bytes. The channels are either values
// of k (forward and backward_data) or columns of the tile (gradients of weights).
enum class Channels32 : std::uint8_t { none, as_k, as_columns };

// A tile shape. In names, /2 stands for a cluster of two blocks, p for ping-pong (sm90_kernel.cuh),
// t for taps that share pixels (with or without ping-pong), c32 for boxes of 32 channels, and r for
// an operand that is read into registers (sm90_mn_major.h).
struct Sm90Tile {
  const char* name;
  int rows, columns, cluster;
  bool ping_pong;
  // The number of taps of a filter's row that share the pixels of a pipeline stage.
  int taps = 1;
  Channels32 channels32 = Channels32::none;
};
inline constexpr Sm90Tile kSm90Tiles[] = {
    {"128x256/2", 128, 256, 2, false},
    {"128x256", 128, 256, 1, false},
    {"128x192", 128, 192, 1, false},
    {"128x128p", 128, 128, 1, true},
    {"256x64p", 256, 64, 1, true},
    {"128x64p", 128, 64, 1, true},
    {"64x192p", 64, 192, 1, true},
    {"64x64p", 64, 64, 1, true},
    {"128x160", 128, 160, 1, false},
    {"64x256p", 64, 256, 1, true},
    {"64x192t", 64, 192, 1, true, 3},
    {"128x192t", 128, 192, 1, false, 3},
    {"256x64t", 256, 64, 1, true, 3},
    {"128x160t", 128, 160, 1, false, 3},
    {"256x64t5", 256, 64, 1, true, 5},
    {"256x64pc32", 256, 64, 1, true, 1, Channels32::as_k},
    {"256x64tc32", 256, 64, 1, true, 3, Channels32::as_k},
    {"256x64t5c32", 256, 64, 1, true, 5, Channels32::as_k},
    {"64x192pc32", 64, 192, 1, true, 1, Channels32::as_columns},
    {"64x160t5c32", 64, 160, 1, true, 5, Channels32::as_columns},
};
// If n is contiguous, TMA loads B in boxes. Returns how many columns of a tile such a box has.
constexpr int box_columns(const Sm90Tile& tile) {
  return tile.channels32 == Channels32::as_columns ? 32 : 64;
}
// Returns how many taps of a filter's row the consumers multiply with the pixels of a stage, one
// tap after the other. In tiles for gradients of weights the number is 1: there, each tap has a box
// of columns of the tile instead.
constexpr int depth_taps(const Sm90Tile& tile) {
  return tile.columns == tile.taps * box_columns(tile) ? 1 : tile.taps;
}
// If taps share pixels, a gap follows each row of positions. Returns how many positions a gap has.
// They belong to no output, and TMA reads zeros for them. The last taps of the row read these zeros
// as padding, and so do the first taps of the next row.
constexpr int gap_of(const Sm90Tile& tile) { return tile.taps / 2; }
// Returns how many bytes of values of k a row of a pipeline stage has, for one tap.
constexpr int depth_bytes(const Sm90Tile& tile) { return tile.channels32 == Channels32::as_k ? 64 : 128; }
// Returns whether the columns fill no whole number of boxes. Such tiles suit layers that have as
// many filters as the tile has columns. In bf16, the last TMA box of each row of the tile is only
// half used.
constexpr bool is_narrow(const Sm90Tile& tile) { return tile.columns % box_columns(tile) != 0; }
constexpr bool ends_in_half_box(const Sm90Tile& tile, Math math) {
  return math == Math::bf16 && is_narrow(tile);
}
// Returns whether plain products have kernels for the tile. Only convolutions have kernels for
// narrow tiles, for tiles of several taps or boxes of 32 channels, and for 64x256 (gradients of
// weights in bf16).
constexpr bool suits_products(const Sm90Tile& tile) {
  return !is_narrow(tile) && tile.taps == 1 && tile.channels32 == Channels32::none &&
         (tile.rows > 64 || tile.columns < 256);
}

// Deals out work items. A work item is a tile and a range of k (a split). A band is a few rows of
// tiles, whose operands fit into L2. The order goes through a band column by column, then through
// the next band. After the last band, it begins again with the next split of k.
class TileScheduler {
 public:
  struct WorkItem {
    int m_tile, n_tile, split, k_begin, k_end;
  };

  TileScheduler() = default;
  // `m_tiles` and `band` count clusters. The blocks of a cluster compute tiles one above the other.
  // If there are no tiles, there are no work items.
  TileScheduler(int m_tiles, int n_tiles, int k_blocks, int splits, int band)
      : m_tiles_(m_tiles),
        n_tiles_(n_tiles),
        k_blocks_(k_blocks),
        splits_(splits),
        last_band_((m_tiles - 1) / band),
        tiles_(std::max(std::int64_t{m_tiles} * n_tiles, std::int64_t{1})),
        band_tiles_(std::max(std::int64_t{band} * n_tiles, std::int64_t{1})),
        band_(band),
        last_height_(std::max(m_tiles - last_band_ * band, 1)),
        split_blocks_(k_blocks / splits),
        longer_splits_(k_blocks % splits) {}

  int m_tiles() const { return m_tiles_; }
  __host__ __device__ int n_tiles() const { return n_tiles_; }
  __host__ __device__ int k_blocks() const { return k_blocks_; }
  int splits() const { return splits_; }
  __host__ __device__ int work_items() const { return m_tiles_ * n_tiles_ * splits_; }

  __host__ __device__ WorkItem at(int index) const {
    const int split = divide(index, tiles_), tile = index - split * int(tiles_.divisor);
    const int band = divide(tile, band_tiles_), inside = tile - band * int(band_tiles_.divisor);
    const cuda::Divider height = band == last_band_ ? last_height_ : band_;
    const int n_tile = divide(inside, height), row = inside - n_tile * int(height.divisor);
    const int longer = split < longer_splits_ ? split : longer_splits_;
    const int begin = split * split_blocks_ + longer;
    return {band * int(band_.divisor) + row, n_tile, split, begin,
            begin + split_blocks_ + (split < longer_splits_ ? 1 : 0)};
  }

 private:
  __host__ __device__ static int divide(int number, const cuda::Divider& by) {
    return int(by(std::uint32_t(number)));
  }

  int m_tiles_ = 0, n_tiles_ = 0, k_blocks_ = 0, splits_ = 0, last_band_ = 0;
  cuda::Divider tiles_, band_tiles_, band_, last_height_;
  // The first longer_splits_ splits have one block of k more than the other splits.
  int split_blocks_ = 0, longer_splits_ = 0;
};

TileScheduler sm90_schedule(const Problem& problem, const Sm90Tile& tile, int splits);
// Returns the expected microseconds of a product that moves `bytes` bytes. With `has_partials`,
// this includes another kernel that adds up partial sums. With `windows`, an operand is read
// through an im2col map (cuda_tensor_map.h).
double sm90_expected_time(const Problem& problem, int tile, int splits, double bytes, bool has_partials,
                          bool windows);
// Returns the expected microseconds of a product: the longer of its arithmetic (`compute`) and its
// memory traffic, plus a small fraction of the shorter one, plus the time for adding up partial
// sums.
double with_memory(const Problem& problem, const Sm90Tile& tile, const TileScheduler& schedule,
                   double compute, double bytes, bool has_partials);
inline constexpr double kSm90Clock = kReferenceGpu.planned_cycles;  // cycles per microsecond
// Bytes that a copy reads and writes, per microsecond.
inline constexpr double kCopyBytes = kReferenceGpu.planned_bytes;

// Work that a kernel does in addition to storing C: `sums` computes column sums of C and of its
// squares, and `mask` applies a mask. Each is compiled as a separate kernel, because the additional
// code would slow down the plain kernel.
enum class Extra : std::uint8_t { none, sums, mask };

// Applied to A before the product (sm90_affine.cuh): min(max(scale a + shift, least), most), with a
// scale and a shift for each channel. A's channels are k or, if m is contiguous, rows.
struct AffineOperand {
  const float* of_channels;  // [channels][2]: scale and shift
  int channels;
  float least, most;
};

// Says how many shares of work a launch has: `blocks` for each member (kernels/device/kernel.h). A
// share is what one block would compute in a launch for a single member. The first `longer` shares
// of a member have one work item more than the others, or all have as many.
struct Shares {
  int blocks, members, longer;
};

// The arguments of a launch.
struct Sm90Call {
  int tile, blocks;
  TileScheduler schedule;
  MemberMap a, b, c;
  int m, n;
  float alpha;
  const float* bias;
  bool relu, bf16;
  float* sum_slots;
  MemberLayout members;
};

// Starts the kernel. Extra::sums requires k contiguous in both operands, and C in bf16.
template <Math math, bool a_mn_major, bool b_mn_major, Extra extra>
void sm90_launch(const Sm90Call& call, cudaStream_t stream);

extern template void sm90_launch<Math::bf16, false, false, Extra::none>(const Sm90Call&, cudaStream_t);
extern template void sm90_launch<Math::bf16, false, false, Extra::sums>(const Sm90Call&, cudaStream_t);
extern template void sm90_launch<Math::bf16, false, true, Extra::none>(const Sm90Call&, cudaStream_t);
extern template void sm90_launch<Math::bf16, true, false, Extra::none>(const Sm90Call&, cudaStream_t);
extern template void sm90_launch<Math::bf16, true, true, Extra::none>(const Sm90Call&, cudaStream_t);
extern template void sm90_launch<Math::tf32, false, false, Extra::none>(const Sm90Call&, cudaStream_t);

}  // namespace convoy::kernels::gemm
