// Between the wgmma rung's host code and its kernels, one translation unit per order of A and B.
// Plain C++ but for the marks of device functions.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>

#include "kernels/device/divider.h"
#include "kernels/device/gpu_model.h"
#include "kernels/gemm/gemm.h"

namespace convoy::kernels::gemm {

// A tile shape as the host sees it. In names, p stands for ping_pong, t for several taps, r (sm90_mn_major.h) for an operand
// through registers.
struct Sm90Tile {
  const char* name;
  int rows, columns, cluster;
  bool ping_pong;
  int taps = 1;  // of a filter's row, whose windows share the pixels of a stage: see depth_taps()
};
inline constexpr Sm90Tile kSm90Tiles[] = {
    {"128x256/2", 128, 256, 2, false}, {"128x256", 128, 256, 1, false},
    {"128x192", 128, 192, 1, false},   {"128x128p", 128, 128, 1, true},
    {"256x64p", 256, 64, 1, true},     {"128x64p", 128, 64, 1, true},
    {"64x192p", 64, 192, 1, true},     {"64x64p", 64, 64, 1, true},
    {"128x160", 128, 160, 1, false},   {"64x256p", 64, 256, 1, true},
    {"64x192t", 64, 192, 1, true, 3},  {"128x192t", 128, 192, 1, false, 3},
    {"256x64t", 256, 64, 1, true, 3},  {"128x160t", 128, 160, 1, false, 3},
};
// Taps within a stage's k. Those of gradients of weights are the tile's columns instead, 64 of each.
constexpr int depth_taps(const Sm90Tile& tile) { return tile.columns == tile.taps * 64 ? 1 : tile.taps; }
// Columns that are no multiple of 64, for as many filters. In bf16 the last of the boxes of 128 bytes a row is half a
// box.
constexpr bool is_narrow(const Sm90Tile& tile) { return tile.columns % 64 != 0; }
constexpr bool ends_in_half_box(const Sm90Tile& tile, Math math) {
  return math == Math::bf16 && is_narrow(tile);
}
// Tiles that plain products have kernels of. Convolutions alone have the rest: narrow ones, those of several taps and,
// for gradients of weights in bf16, 64x256.
constexpr bool suits_products(const Sm90Tile& tile) {
  return !is_narrow(tile) && tile.taps == 1 && (tile.rows > 64 || tile.columns < 256);
}

// Which work a block does: pieces (tile, range of k), the tiles of a cluster's column first, then along n,
// in bands of m so that both operands are reused from L2; the pieces of k outermost. A block asks before each piece, and
// nothing goes on until it knows: no division by what is not known at compile time.
class Schedule {
 public:
  struct Piece {
    int m_tile, n_tile, split, k_begin, k_end;
  };

  Schedule() = default;
  // m_tiles and band in units of a cluster's height; no pieces where there are no tiles.
  Schedule(int m_tiles, int n_tiles, int k_blocks, int splits, int band)
      : m_tiles_(m_tiles),
        n_tiles_(n_tiles),
        k_blocks_(k_blocks),
        splits_(splits),
        last_band_((m_tiles - 1) / band),
        tiles_(std::max(std::int64_t{m_tiles} * n_tiles, std::int64_t{1})),
        band_tiles_(std::max(std::int64_t{band} * n_tiles, std::int64_t{1})),
        band_(band),
        last_height_(std::max(m_tiles - last_band_ * band, 1)),
        piece_blocks_(k_blocks / splits),
        longer_pieces_(k_blocks % splits) {}

  int m_tiles() const { return m_tiles_; }
  __host__ __device__ int n_tiles() const { return n_tiles_; }
  __host__ __device__ int k_blocks() const { return k_blocks_; }
  int splits() const { return splits_; }
  __host__ __device__ int pieces() const { return m_tiles_ * n_tiles_ * splits_; }

  __host__ __device__ Piece at(int index) const {
    const int split = divide(index, tiles_), tile = index - split * int(tiles_.divisor);
    const int band = divide(tile, band_tiles_), inside = tile - band * int(band_tiles_.divisor);
    const cuda::Divider height = band == last_band_ ? last_height_ : band_;
    const int n_tile = divide(inside, height), row = inside - n_tile * int(height.divisor);
    const int longer = split < longer_pieces_ ? split : longer_pieces_;
    const int begin = split * piece_blocks_ + longer;
    return {band * int(band_.divisor) + row, n_tile, split, begin,
            begin + piece_blocks_ + (split < longer_pieces_ ? 1 : 0)};
  }

 private:
  __host__ __device__ static int divide(int number, const cuda::Divider& by) {
    return int(by(std::uint32_t(number)));
  }

  int m_tiles_ = 0, n_tiles_ = 0, k_blocks_ = 0, splits_ = 0, last_band_ = 0;
  cuda::Divider tiles_, band_tiles_, band_, last_height_;
  int piece_blocks_ = 0, longer_pieces_ = 0;  // the first ones have a block more
};

Schedule sm90_schedule(const Problem& problem, const Sm90Tile& tile, int splits);
// Microseconds of a product that moves `bytes`; `in_pieces` where another kernel finishes its sums, `windows` where A (of
// gradients of weights, B) comes through an im2col map.
double sm90_expected_time(const Problem& problem, int tile, int splits, double bytes, bool in_pieces,
                          bool windows);
// What both kinds of this rung's tiles add to `compute` microseconds: the bytes at memory's rate, operands that several
// tiles share counted a little more than once, and the kernel that adds the pieces.
double with_memory(const Problem& problem, const Sm90Tile& tile, const Schedule& schedule, double compute,
                   double bytes, bool in_pieces);
inline constexpr double kSm90Clock = kReferenceGpu.planned_cycles;  // a microsecond
inline constexpr double kCopyBytes = kReferenceGpu.planned_bytes;   // of memory, a microsecond

// What a kernel does beside storing C: the sums of its columns and of their squares, or making zero what a mask does not
// let through. Kernels apart, as what the one needs slows the other.
enum class Extra : std::uint8_t { none, sums, mask };

// What a launch needs, type-erased over the tile shapes. From c on as in TileStore::Parameters.
struct Sm90Call {
  int tile, blocks;
  Schedule schedule;
  CUtensorMap a, b, c;
  int m, n;
  float alpha;
  const float* bias;
  bool relu, bf16;
  float* sum_slots;
};

// Column sums are fused into forward products, those with both operands' k contiguous and C in bf16; the others take a
// pass of their own.
template <Math math, bool a_mn_major, bool b_mn_major, Extra extra>
void sm90_launch(const Sm90Call& call, cudaStream_t stream);

extern template void sm90_launch<Math::bf16, false, false, Extra::none>(const Sm90Call&, cudaStream_t);
extern template void sm90_launch<Math::bf16, false, false, Extra::sums>(const Sm90Call&, cudaStream_t);
extern template void sm90_launch<Math::bf16, false, true, Extra::none>(const Sm90Call&, cudaStream_t);
extern template void sm90_launch<Math::bf16, true, false, Extra::none>(const Sm90Call&, cudaStream_t);
extern template void sm90_launch<Math::bf16, true, true, Extra::none>(const Sm90Call&, cudaStream_t);
extern template void sm90_launch<Math::tf32, false, false, Extra::none>(const Sm90Call&, cudaStream_t);

}  // namespace convoy::kernels::gemm
