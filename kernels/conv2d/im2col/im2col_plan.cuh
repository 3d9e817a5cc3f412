// What the im2col and folded engines would run on a task: tile shapes, pieces of k, workspace, expected times. Host code.
#pragma once

#include <vector>

#include "kernels/conv2d/cuda/group_packing.h"
#include "kernels/conv2d/im2col/views.cuh"

namespace convoy::kernels::conv {

// Whether the tiles are those for tf32 operands whose k is not contiguous.
bool is_mn_major(const Task& task);
const gemm::Sm90Tile& tile_at(const Task& task, int tile);
int tile_of(const Plan& plan);

bool empty(const View& view);
// Whether a tile of several taps can have those of a filter's row: its windows are neighbours, with one pixel of padding on
// either side; as columns, of one block of channels.
bool suits(const Task& task, Engine engine, const gemm::Sm90Tile& tile);
// The view as the tile reads it: taps share pixels where behind a row's positions there is one more.
View seen_by(const gemm::Sm90Tile& tile, View view);
bool strided(const Task& task);
// Whether the windows are the pixels of a tensor without gaps; boxes of a plain matrix come a little faster than those of an
// im2col map.
bool is_matrix(const Task& task, const View& view);
// Whether the gradient comes out with its filters in the columns, pieces of k or not, and is turned as they are added.
bool turned(const Task& task, int tile);
// The groups as this tile takes them, and the filters as it reads them, or gives their gradient.
Bundles bundles_of(const Task& task, int tile);
BundledFilters filters_of(const Task& task, int tile);
// Whether those are a copy, or the gradient a workspace, for the sake of groups.
bool rearranges_filters(const Task& task, int tile);
// Channels of the windows that one tile reads, and of the gradient's rows.
int window_channels(const Task& task, const View& view, int tile);
int gradient_channels(const Task& task, const View& view, int tile);

// Whether backward_data reads a transposed copy of the filters, k contiguous: tf32 must, narrow tiles are faster for it.
bool transposes(const Task& task, int tile);
// Whether the kernel that writes y also takes its statistics: it must see whole sums.
bool sums(const Task& task, int splits);
// Whether the kernel that writes dx does what input_norm asks for: whole sums, too, and of a tile that has_norm_kernel(), as
// the candidates have.
bool norms(const Task& task, int splits);
// Whether the kernel that writes dx also masks it.
bool masks(const Task& task, int splits);

// The product as the kernel runs it: whole blocks of channels.
gemm::Problem padded_product(const Task& task, const View& view, int tile);
// The result, or one piece of it, as a matrix without gaps.
struct Result {
  std::int64_t m, n;
};
Result result_of(const Task& task, const View& view, int tile);

struct Workspace {
  float *partial, *gradient, *slots;  // pieces of k; the folded or bundled filters' gradient; sums of columns
  std::uint8_t *filters, *images;
  std::size_t bytes;
};
Workspace carve(const Task& task, Engine engine, int tile, int splits, void* base);

bool suits_copy_engine(const Task& task, Engine engine);
// The best numbers of pieces for each tile shape, the expected best first: with the pass over the result where a plan cannot
// do what the task asks for on the way out.
std::vector<Plan> window_candidates(const Task& task, Engine engine);

}  // namespace convoy::kernels::conv
