// Chooses tiles, planes and shared memory for depthwise convolutions on tensor cores
// (depthwise_products.h).
#include "kernels/conv2d/cuda/depthwise_products.h"
#include "kernels/device/cuda_kernel.h"

namespace convoy::kernels::conv::products {
namespace {

using cuda::ceil_div;

// Bytes of shared memory for one block. Three blocks with kGoodShared each fit on a multiprocessor
// of Hopper. Every supported chip can give a block kMostShared.
constexpr std::size_t kGoodShared = 75 * 1024, kMostShared = 99 * 1024;

// Returns the largest number of patches, among eight neighbours, that begin in the same banks of
// shared memory. A load from the eight patches at once takes so many cycles.
template <class F>
int conflicts(const Call& call) {
  const DepthwiseTiling& tiling = call.tiling;
  int count[8] = {}, most = 0;
  for (int patch = 0; patch < std::min(8, tiling.patches()); ++patch) {
    const int side = patch / tiling.across, down = side / tiling.images;
    const int row = side % tiling.images * call.input.rows + down * F::kRowStep;
    const int column = patch % tiling.across * F::kColumnStep;
    most = std::max(most, ++count[(row * call.input.pitch + column) / 8 % 8]);
  }
  return most;
}

// Sets the layout of a call's planes. The input planes may get more rows and a larger pitch than
// needed, so that neighbouring patches lie in different banks of shared memory.
template <class F>
void choose_planes(Call& call) {
  const DepthwiseTiling& tiling = call.tiling;
  const int columns = (tiling.across - 1) * F::kColumnStep + F::kInputColumns;
  const int rows = (tiling.down - 1) * F::kRowStep + F::kInputRows;
  const int output_columns = tiling.across * F::kOutputColumns;
  call.input_columns = F::kTransposed ? columns : (output_columns - 1) * F::kStride + F::kFilter;
  Call best{};
  for (const int more_columns : {0, 8})
    for (const int more_rows : {0, 1}) {
      call.input.pitch = columns + more_columns, call.input.rows = rows + more_rows;
      if (best.input.rows == 0 || conflicts<F>(call) < conflicts<F>(best)) best = call;
    }
  call = best;
  call.output.rows = tiling.down * kPatchRows;
  call.output.pitch = output_columns + (tiling.across % 8 == 4 ? 8 : 0);
  for (Plane* plane : {&call.input, &call.output}) {
    plane->words = tiling.images * plane->rows * plane->pitch / 2;
    plane->lines = cuda::Divider(plane->rows);
  }
  if (!call.has_output_planes())
    call.input.words = call.output.words = std::max(call.input.words, call.output.words);
  call.input.pairs = cuda::Divider(columns / 2), call.output.pairs = cuda::Divider(output_columns / 2);
}

// Estimates the number of instructions for a channel: for copying input and output pixels, and for
// products.
template <class F>
double cost_of(const Call& call) {
  const DepthwiseTiling& tiling = call.tiling;
  const double inputs = double(tiling.images) * call.input.rows * int(call.input.pairs.divisor) * 2;
  const double outputs = double(tiling.images) * call.output.rows * tiling.across * F::kOutputColumns;
  const double products = double(ceil_div(tiling.patches(), 16)) * F::kInputRows * 16 * 32;
  const double crowding = call.shared_bytes() > kGoodShared ? 1.3 : 1;
  return tiling.tiles() * (2 * inputs + 2 * outputs + products + 2000) * crowding;
}

template <class F>
void choose_tile(Call& call) {
  choose_tiling(call, 32 / F::kOutputMatrices, kPatchRows, F::kOutputColumns,
                [](Call& tried) -> std::optional<double> {
                  choose_planes<F>(tried);
                  if (tried.shared_bytes() > kMostShared) return {};
                  return cost_of<F>(tried);
                });
}
template <int filter>
void choose_tile_for(Call& call) {
  if (call.transposed)
    choose_tile<Form<filter, 2, true>>(call);
  else if (call.stride == 2)
    choose_tile<Form<filter, 2, false>>(call);
  else
    choose_tile<Form<filter, 1, false>>(call);
}

// Returns how many blocks per slab of channels the device can run at the same time.
int resident_blocks(const Call& call) {
  const int by_memory = int(std::size_t{227 * 1024} / (call.shared_bytes() + 1024));
  const int by_registers = call.direction == Direction::backward_weights ? 2 : 3;
  return std::max(1, std::min(by_registers, by_memory)) * cuda::kMultiprocessors / call.slabs;
}

}  // namespace

// Returns whether this family supports the task. It requires bf16 and a multiple of 8 channels.
// With 7x7 and a stride of 2, the sums of backward_weights would not fit into the registers.
bool supports(const Task& task) {
  const Geometry& g = task.geometry;
  return task.type() == DType::bf16 && g.c % 8 == 0 &&
         !(task.direction == Direction::backward_weights && g.r == 7 && g.stride[0] == 2);
}

Call make_call(const Task& task) {
  Call call{{depthwise_shape(task)}};
  call.slab = call.direction == Direction::backward_weights ? 16 : 32;
  (call.filter == 3 ? choose_tile_for<3> : call.filter == 5 ? choose_tile_for<5> : choose_tile_for<7>)(call);
  call.slabs = int(ceil_div(call.channels, call.slab));
  call.row_blocks = even_blocks(call.tiling.tiles(), resident_blocks(call));
  return call;
}

}  // namespace convoy::kernels::conv::products
