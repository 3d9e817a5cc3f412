// Chooses plans of the im2col and folded engines: tile shapes, numbers of splits, workspace,
// expected times. Host code.
#pragma once

#include <vector>

#include "kernels/conv2d/cuda/group_packing.h"
#include "kernels/conv2d/im2col/views.cuh"

namespace convoy::kernels::conv {

// Returns whether the task uses the tiles for tf32 operands whose k is not contiguous.
bool is_mn_major(const Task& task);
const gemm::Sm90Tile& tile_at(const Task& task, int tile);
int tile_of(const Plan& plan);

bool empty(const View& view);
// Returns whether the tile suits the task. A tile that reads one tap at a time suits every task. A
// tile that reads several taps together (Sm90Tile::taps) needs filters that are exactly so many
// taps wide, a stride of 1 and a padding of 1. If the taps are its columns, all channels must be in
// one stage.
bool suits(const Task& task, Engine engine, const gemm::Sm90Tile& tile);
// Returns the view as the tile reads it. If taps share pixels, each row of positions gets one more
// position, in the padding, for the taps at the row's end.
View seen_by(const gemm::Sm90Tile& tile, View view);
bool strided(const Task& task);
// Returns whether the windows are all pixels of a tensor without gaps. TMA reads boxes of such a
// plain matrix a little faster than boxes of an im2col map.
bool is_matrix(const Task& task, const View& view);
// Returns whether the kernel writes the gradient with filters as columns. The gradient is then
// transposed while the splits of k are added.
bool gradient_is_transposed(const Task& task, int tile);
// Return how this tile packs groups (group_packing.h), and the layout in which it reads the filters
// or writes their gradient.
GroupPacking packing_of(const Task& task, int tile);
PackedFilters filters_of(const Task& task, int tile);
// Returns whether groups require a copy of the filters, or a workspace for the filters' gradient.
bool rearranges_filters(const Task& task, int tile);
// Return how many channels of the window one tile reads (with groups, those of one pack), and how
// many channels a row of the filters' gradient has.
int window_channels(const Task& task, const View& view, int tile);
int gradient_channels(const Task& task, const View& view, int tile);

// Returns whether backward_data reads a transposed copy of the filters, with k contiguous. tf32
// must do so, and narrow tiles are faster that way.
bool transposes(const Task& task, int tile);
// Returns whether the kernel that writes y also computes its statistics. It can do so if k is not
// split, because it then has whole sums.
bool sums(const Task& task, int splits);
// Returns whether the kernel that writes dx fuses input_norm. k must not be split, and pixels must
// not be joined. The tile must satisfy has_norm_kernel(), as the tiles of all candidates do.
bool norms(const Task& task, int splits);
// Returns whether the kernel that writes dx also applies the mask of input_relu.
bool masks(const Task& task, int splits);
// Returns whether the kernel that writes y reads a copy of the bias for each of the joined pixels.
bool repeats_bias(const Task& task);

// Returns the product that the kernel runs, whose channels are padded to whole blocks.
gemm::Problem padded_product(const Task& task, const View& view, int tile);
// The extents of the result, or of one split of it, as a matrix without gaps.
struct Result {
  std::int64_t m, n;
};
Result result_of(const Task& task, const View& view, int tile);

struct Workspace {
  // Parts of the workspace: sums of the splits of k, the gradient of folded or packed filters,
  // slots of column sums.
  float *partial, *gradient, *slots;
  float* bias;  // one copy of the bias per joined pixel, if repeats_bias()
  std::uint8_t *filters, *images;
  std::size_t bytes;
};
Workspace carve(const Task& task, Engine engine, int tile, int splits, void* base);

bool suits_tma(const Task& task, Engine engine);
// Returns the plans with the best numbers of splits for each tile shape, the plan that is expected
// to be the fastest first. The expected times include the pass over the result that a plan needs if
// it does not fuse the extra work.
std::vector<Plan> window_candidates(const Task& task, Engine engine);

}  // namespace convoy::kernels::conv
