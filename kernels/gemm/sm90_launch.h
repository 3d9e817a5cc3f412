// Between the wgmma rung's host code and its kernels, one translation unit per order of A and B.
// Plain C++ but for the marks of device functions.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "kernels/gemm/gemm.h"

namespace convoy::kernels::gemm {

// A tile shape as the host sees it.
struct Sm90Tile {
  const char* name;
  int rows, columns, cluster;
  bool ping_pong;
};
inline constexpr Sm90Tile kSm90Tiles[] = {
    {"128x256/2", 128, 256, 2, false}, {"128x256", 128, 256, 1, false}, {"128x192", 128, 192, 1, false},
    {"128x128p", 128, 128, 1, true},   {"256x64p", 256, 64, 1, true},   {"128x64p", 128, 64, 1, true},
    {"64x192p", 64, 192, 1, true},     {"64x64p", 64, 64, 1, true},     {"128x160", 128, 160, 1, false},
    {"64x256p", 64, 256, 1, true},
};
// Columns that are no multiple of 64, for as many filters.
constexpr bool is_narrow(const Sm90Tile& tile) { return tile.columns % 64 != 0; }
// Tiles that plain products have kernels of. Convolutions in bf16 alone have the rest: narrow ones, and 64x256 for gradients
// of weights.
constexpr bool suits_products(const Sm90Tile& tile) {
  return !is_narrow(tile) && (tile.rows > 64 || tile.columns < 256);
}

// Which work a block does: pieces (tile, range of k), the tiles of a cluster's column first, then along n,
// in bands of m so that both operands are reused from L2; the pieces of k outermost.
struct Schedule {
  int m_tiles;  // in units of a cluster's height
  int n_tiles;
  int splits;
  int k_blocks;
  int band;

  struct Piece {
    int m_tile, n_tile, split, k_begin, k_end;
  };
  __host__ __device__ int pieces() const { return m_tiles * n_tiles * splits; }
  __device__ Piece at(int index) const {
    const int tiles = m_tiles * n_tiles;
    const int split = index / tiles, tile = index - split * tiles;
    const int band_tiles = band * n_tiles, band_index = tile / band_tiles;
    const int first = band_index * band, height = band < m_tiles - first ? band : m_tiles - first;
    const int inside = tile - band_index * band_tiles;
    const int n_tile = inside / height, m_tile = first + inside - n_tile * height;
    const int begin = int(std::int64_t{k_blocks} * split / splits);
    return {m_tile, n_tile, split, begin, int(std::int64_t{k_blocks} * (split + 1) / splits)};
  }
};

Schedule sm90_schedule(const Problem& problem, const Sm90Tile& tile, int splits);
// Microseconds of a product that moves `bytes`; `in_pieces` where another kernel finishes its sums.
double sm90_expected_time(const Problem& problem, int tile, int splits, double bytes, bool in_pieces);
// What both kinds of this rung's tiles add to `compute` microseconds: the bytes at memory's rate, operands that several
// tiles share counted a little more than once, and the kernel that adds the pieces.
double with_memory(const Problem& problem, const Sm90Tile& tile, const Schedule& schedule, double compute,
                   double bytes, bool in_pieces);
inline constexpr double kSm90Clock = 1.6e3;  // cycles in a microsecond

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
