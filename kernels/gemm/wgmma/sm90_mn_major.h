// The interface between host code and kernels of the wgmma tiles for tf32 operands whose k is not
// contiguous (sm90_mn_major.cuh).
#pragma once

#include <iterator>

#include "kernels/gemm/common/epilogue.cuh"
#include "kernels/gemm/wgmma/sm90_launch.h"

namespace convoy::kernels::gemm {

// The tiles for tf32 operands whose k is not contiguous. Plan::tile counts them after the tiles of
// kSm90Tiles. A tile has a longer side x and a shorter side y. Either side can be m.
inline constexpr Sm90Tile kMnMajorTiles[] = {
    {"256x128r", 256, 128, 1, false}, {"128x256r", 128, 256, 1, false}, {"256x64r", 256, 64, 1, false},
    {"64x256r", 64, 256, 1, false},   {"128x128r", 128, 128, 1, false}, {"128x64r", 128, 64, 1, false},
    {"64x128r", 64, 128, 1, false},
};
inline constexpr int kFirstMnMajorTile = int(std::size(kSm90Tiles));
// Returns whether the longer side x is n.
constexpr bool x_is_n(const Sm90Tile& tile) { return tile.rows < tile.columns; }

// Returns whether the plans of a problem use these tiles. Rows of the operands must start at
// multiples of 16 bytes. Otherwise both operands are transposed first, for tiles of kSm90Tiles.
inline bool is_mn_major(const Problem& p) {
  return p.math == Math::tf32 && p.transpose_a && !p.transpose_b && p.lda % 4 == 0 && p.ldb % 4 == 0;
}
std::vector<Plan> mn_major_candidates(const Problem& problem);
Launch bind_mn_major(const Problem& problem, const Plan& plan, const Buffers& buffers);
// Returns the expected microseconds of a product that moves `bytes` bytes. With `has_partials`,
// this includes another kernel that adds up partial sums.
double mn_major_expected_time(const Problem& problem, int tile, int splits, double bytes, bool has_partials);

// Stores the results of a plain product: Whole stores elements of C, and Partial stores raw sums.
// Each is compiled into a separate kernel, because one kernel for both took 15 microseconds longer.
struct MatrixResult {
  Epilogue epilogue;
  int m, n;
  std::int64_t partial_pitch;

  struct Whole {
    const MatrixResult& of;
    std::ptrdiff_t offset;
    // Stores `count` neighbouring elements of a row.
    template <int count>
    __device__ void store(const float (&values)[count], int row, int column) const {
      if (row < of.m && column < of.n) of.epilogue.store_run(values, row, column, of.n, offset);
    }
  };
  struct Partial {
    const MatrixResult& of;
    float* data;
    template <int count>
    __device__ void store(const float (&values)[count], int row, int column) const {
      using Vector = std::conditional_t<count == 4, float4, float2>;
      // A vector may end beyond column n, because rows of partial sums are whole vectors.
      if (row < of.m && column < of.n)
        *reinterpret_cast<Vector*>(data + row * of.partial_pitch + column) =
            *reinterpret_cast<const Vector*>(values);
    }
  };
  template <class Store>
  __device__ void with_split(int split, std::ptrdiff_t offset, Store store) const {
    if (epilogue.partial == nullptr)
      store(Whole{*this, offset});
    else
      store(Partial{*this,
                    Epilogue::moved(epilogue.partial, offset) + std::int64_t{split} * m * partial_pitch});
  }
};

struct MnMajorCall {
  int tile, blocks;
  TileScheduler schedule;
  MemberMap a, b;
  MatrixResult result;
  MemberLayout members;
};
void sm90_launch_mn_major(const MnMajorCall& call, cudaStream_t stream);

}  // namespace convoy::kernels::gemm
