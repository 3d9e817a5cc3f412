// Chooses plans of the im2col and folded engines (engines.h): tile shapes and numbers of splits,
// with their workspace and their expected times. Host code.
#pragma once

#include <vector>

#include "kernels/conv2d/cuda/group_packing.h"
#include "kernels/conv2d/im2col/views.cuh"

namespace convoy::kernels::conv {

// Returns whether the task uses the tiles for tf32 operands whose k is not contiguous
// (sm90_mn_major.h).
bool is_mn_major(const Task& task);
const gemm::Sm90Tile& tile_at(const Task& task, int tile);
int tile_of(const Plan& plan);

bool empty(const View& view);
// Returns whether the tile suits the task. A tile whose taps share pixels (Sm90Tile::taps) requires
// filters as wide as its number of taps, stride 1, and padding that keeps the width.
bool suits(const Task& task, Engine engine, const gemm::Sm90Tile& tile);
// Returns the view as kernels with this tile read it. If taps share pixels (Sm90Tile::taps), each
// row of positions gets a gap (gemm::gap_of), which reads zeros for the last taps of the row.
View seen_by(const gemm::Sm90Tile& tile, View view);
// Returns how many channels a TMA box of the images has.
int box_channels(const Task& task, const gemm::Sm90Tile& tile);
bool strided(const Task& task);
// Returns whether the windows are simply all pixels of a tensor. TMA reads such a matrix a little
// faster through a map of a plain matrix than through an im2col map.
bool is_matrix(const Task& task, const View& view);
// Returns whether the kernel writes the filters' gradient transposed. The pass that adds up the
// splits of k then transposes it back.
bool gradient_is_transposed(const Task& task, int tile);
GroupPacking packing_of(const Task& task, int tile);
PackedFilters filters_of(const Task& task, int tile);
// Returns whether grouped filters must be copied into another layout. Their gradient then goes
// through a workspace.
bool rearranges_filters(const Task& task, int tile);
// Return how many channels of the images a tile reads, and how many channels a row of the filters'
// gradient has.
int window_channels(const Task& task, const View& view, int tile);
int gradient_channels(const Task& task, const View& view, int tile);

// Returns whether backward_data reads a transposed copy of the filters, in which k is contiguous.
// tf32 requires this, and for narrow tiles it is faster.
bool transposes(const Task& task, int tile);
// Returns whether the kernel that writes y also computes batch norm's sums of y. It can do so only
// if k is not split.
bool sums(const Task& task, int splits);
// Returns whether the slots of column sums are double (cuda::MomentSum) and not float.
bool has_double_slots(const Task& task);
// Returns whether the kernel that writes dx fuses input_norm (Conv2dProblem). It can do so only if
// k is not split and pixels are not joined (joined_pixels.h).
bool norms(const Task& task, int splits);
// Returns whether the kernel that writes dx also applies the mask of input_relu (Conv2dProblem).
bool masks(const Task& task, int splits);
// Returns whether the kernel reads a copy of the bias for each joined pixel (joined_pixels.h).
bool repeats_bias(const Task& task);

// Returns the product that the kernel runs, with channels padded to whole blocks.
gemm::Problem padded_product(const Task& task, const View& view, int tile);
// The number of rows and of columns of the result.
struct Result {
  std::int64_t m, n;
};
Result result_of(const Task& task, const View& view, int tile);

struct Im2colWorkspace {
  // `partial` has the partial results of the splits of k, `gradient` the gradient of rearranged
  // filters, and `slots` the column sums of the blocks.
  float *partial, *gradient;
  void* slots;
  float* bias;  // one copy per joined pixel, if repeats_bias()
  std::uint8_t *filters, *images;
  std::size_t bytes;
};
Im2colWorkspace carve(const Task& task, Engine engine, int tile, int splits, void* base);

bool suits_tma(const Task& task, Engine engine);
// Returns the best plans for each tile shape, sorted by expected time. The time includes the
// separate pass that a plan needs if it does not fuse the extra work.
std::vector<Plan> window_candidates(const Task& task, Engine engine);
// Returns the plan by which one launch computes several members (MemberLayout,
// kernels/device/kernel.h), given the plan for one member. The result is another plan only if that
// plan gives the same bits, needs no more workspace, and is expected to be clearly faster for the
// images of all members.
Plan plan_for_members(const Task& task, const Plan& plan, int members);

}  // namespace convoy::kernels::conv
