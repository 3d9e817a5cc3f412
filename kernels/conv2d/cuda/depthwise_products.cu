// The shape of the blocks of depthwise_products.h.
#include <algorithm>

#include "kernels/conv2d/cuda/depthwise_products.h"
#include "kernels/device/cuda_kernel.h"

namespace convoy::kernels::conv::products {
namespace {

using cuda::ceil_div;

// Bytes of shared memory: a third of a Hopper multiprocessor, and what any chip has.
constexpr std::size_t kGoodShared = 75 * 1024, kMostShared = 99 * 1024;

// Returns how many of eight neighbouring patches begin in the same 16 bytes of the banks.
template <class F>
int conflicts(const Call& call) {
  int count[8] = {}, most = 0;
  for (int patch = 0; patch < std::min(8, call.patches()); ++patch) {
    const int side = patch / call.across, down = side / call.images;
    const int row = side % call.images * call.near_rows + down * F::kNearRowStep;
    const int column = patch % call.across * F::kNearColumnStep;
    most = std::max(most, ++count[(row * call.near_pitch + column) / 8 % 8]);
  }
  return most;
}

// Puts the extents of the planes into a call whose patches are known.
template <class F>
void choose_planes(Call& call) {
  const int columns = (call.across - 1) * F::kNearColumnStep + F::kNearColumns;
  const int rows = (call.down - 1) * F::kNearRowStep + F::kNearRows;
  const int far_columns = call.across * F::kFarColumns;
  call.near_columns = F::kTransposed ? columns : (far_columns - 1) * F::kStride + F::kFilter;
  Call best{};
  for (const int more_columns : {0, 8})
    for (const int more_rows : {0, 1}) {
      call.near_pitch = columns + more_columns, call.near_rows = rows + more_rows;
      if (best.near_rows == 0 || conflicts<F>(call) < conflicts<F>(best)) best = call;
    }
  call = best;
  call.far_rows = call.down * kPatchRows;
  call.far_pitch = far_columns + (call.across % 8 == 4 ? 8 : 0);
  const int near_words = call.images * call.near_rows * call.near_pitch / 2;
  const int far_words = call.images * call.far_rows * call.far_pitch / 2;
  const bool apart = call.direction == Direction::backward_weights;
  call.plane_words = apart ? near_words : std::max(near_words, far_words);
  call.far_plane_words = apart ? far_words : 0;
  call.near_pairs = cuda::Divider(columns / 2), call.near_lines = cuda::Divider(call.near_rows);
  call.far_pairs = cuda::Divider(far_columns / 2), call.far_lines = cuda::Divider(call.far_rows);
  // Transposed tiles may begin one before the image.
  const int odd_rows = call.transposed ? call.padding[0] & 1 : 0;
  const int odd_columns = call.transposed ? call.padding[1] & 1 : 0;
  call.blocks_across = int(ceil_div(call.far_w + odd_columns, far_columns));
  call.blocks_down = int(ceil_div(call.far_h + odd_rows, call.far_rows));
  call.batches = int(ceil_div(call.samples, call.images));
}

// About the instructions for a channel: copies of near and far pixels, and products.
template <class F>
double cost_of(const Call& call) {
  const double near = double(call.images) * call.near_rows * int(call.near_pairs.divisor) * 2;
  const double far = double(call.images) * call.far_rows * call.across * F::kFarColumns;
  const double products = double(ceil_div(call.patches(), 16)) * F::kNearRows * 16 * 32;
  const double crowding = call.shared_bytes() > kGoodShared ? 1.3 : 1;
  return call.tiles() * (2 * near + 2 * far + products + 2000) * crowding;
}

template <class F>
void choose_block(Call& call) {
  constexpr int kMost = 32 / F::kParts;
  Call best{};
  double least = 0;
  for (call.across = 1; call.across <= kMost; ++call.across)
    for (call.down = 1; call.across * call.down <= kMost; ++call.down)
      for (call.images = 1; call.patches() <= kMost; ++call.images) {
        const bool whole = call.across * F::kFarColumns >= call.far_w && call.down * kPatchRows >= call.far_h;
        if (call.images > 1 && !whole) break;
        choose_planes<F>(call);
        if (call.shared_bytes() > kMostShared) break;
        const double cost = cost_of<F>(call);
        if (least == 0 || cost < least) least = cost, best = call;
      }
  call = best;
}

// Fills the device once, with blocks that take the same number of tiles in turn.
void choose_row_blocks(Call& call) {
  const int by_memory = int(std::size_t{227 * 1024} / (call.shared_bytes() + 1024));
  const int by_registers = call.direction == Direction::backward_weights ? 2 : 3;
  const int resident = std::max(1, std::min(by_registers, by_memory));
  const int most = std::max(1, resident * cuda::kMultiprocessors / call.slabs);
  call.row_blocks = int(ceil_div(call.tiles(), ceil_div(call.tiles(), most)));
}

template <int filter>
void choose_block_for(Call& call) {
  if (call.transposed)
    choose_block<Form<filter, 2, true>>(call);
  else if (call.stride == 2)
    choose_block<Form<filter, 2, false>>(call);
  else
    choose_block<Form<filter, 1, false>>(call);
}

}  // namespace

// With 7x7 and a stride of 2 the sums of backward_weights would not fit into the registers.
bool suit(const Task& task) {
  const Geometry& g = task.geometry;
  return task.type() == DType::bf16 && g.c % 8 == 0 &&
         !(task.direction == Direction::backward_weights && g.r == 7 && g.stride[0] == 2);
}

Call call_of(const Task& task) {
  const Geometry& g = task.geometry;
  const bool back = task.direction == Direction::backward_data;
  Call call{};
  call.direction = task.direction;
  call.filter = g.r, call.stride = g.stride[0];
  call.transposed = back && call.stride == 2, call.turned = back && call.stride == 1;
  call.relu = task.relu;
  call.samples = g.n, call.channels = g.c;
  call.near_h = back ? g.p : g.h, call.near_w = back ? g.q : g.w;
  call.far_h = back ? g.h : g.p, call.far_w = back ? g.w : g.q;
  for (int axis = 0; axis < 2; ++axis)
    call.padding[axis] = call.turned ? g.r - 1 - g.padding[axis] : g.padding[axis];
  call.slab = task.direction == Direction::backward_weights ? 16 : 32;
  (g.r == 3 ? choose_block_for<3> : g.r == 5 ? choose_block_for<5> : choose_block_for<7>)(call);
  call.slabs = int(ceil_div(g.c, call.slab));
  choose_row_blocks(call);
  return call;
}

}  // namespace convoy::kernels::conv::products
