// Between the host code of the wgmma rung's tiles for tf32 operands whose k is not contiguous and their kernels
// (sm90_mn_major.cuh). Plain C++ but for the marks of device functions.
#pragma once

#include <iterator>

#include "kernels/gemm/epilogue.cuh"
#include "kernels/gemm/sm90_launch.h"

namespace convoy::kernels::gemm {

// In the rung's names they follow kSm90Tiles. A kernel knows a longer side x and a shorter one y; which of them is m is
// up to the tile.
inline constexpr Sm90Tile kMnMajorTiles[] = {
    {"256x128r", 256, 128, 1, false}, {"128x256r", 128, 256, 1, false}, {"256x64r", 256, 64, 1, false},
    {"64x256r", 64, 256, 1, false},   {"128x128r", 128, 128, 1, false}, {"128x64r", 128, 64, 1, false},
    {"64x128r", 64, 128, 1, false},
};
inline constexpr int kFirstMnMajorTile = int(std::size(kSm90Tiles));
// Whether x is n.
constexpr bool is_turned(const Sm90Tile& tile) { return tile.rows < tile.columns; }

struct ScoredPlan {
  Plan plan;
  double time;  // expected microseconds
};
// For each tile the best three numbers of pieces; none for problems of another kind. Plans are bound by bind_mn_major.
std::vector<ScoredPlan> mn_major_candidates(const Problem& problem);
Launch bind_mn_major(const Problem& problem, const Plan& plan, const Buffers& buffers);
// Microseconds of a product that moves `bytes`; `in_pieces` where another kernel finishes its sums.
double mn_major_expected_time(const Problem& problem, int tile, int splits, double bytes, bool in_pieces);

// Where the elements of a plain product go.
struct MatrixResult {
  Epilogue epilogue;
  int m, n;
  std::int64_t partial_pitch;

  struct Piece {
    Epilogue epilogue;
    int m, n;
    // Neighbours of a row.
    template <int count>
    __device__ void store(const float (&values)[count], int row, int column) const {
      if (row < m && column < n) epilogue.store_run(values, row, column, n);
    }
  };
  __device__ Piece piece(int split) const {
    return {epilogue_of_piece(epilogue, split, m, partial_pitch), m, n};
  }
};

// An operand [k][extent]. Its map shows `together` rows as one, for rows whose pitch is no multiple of 16 bytes.
struct MnMajorOperand {
  CUtensorMap map;
  int pitch;
};

struct MnMajorCall {
  int tile, blocks;
  Schedule schedule;
  MnMajorOperand a, b;
  int together;  // 1, 2 or 4
  MatrixResult result;
};
void sm90_launch_mn_major(const MnMajorCall& call, cudaStream_t stream);

}  // namespace convoy::kernels::gemm
