// The shape of the blocks of depthwise_tiles.h.
#include "kernels/conv2d/cuda/depthwise_tiles.h"
#include "kernels/device/cuda_kernel.h"

namespace convoy::kernels::conv::tiles {
namespace {

using cuda::ceil_div;

// Bytes of shared memory: a third of a Hopper multiprocessor, and what any chip has.
constexpr std::size_t kGoodShared = 74 * 1024, kMostShared = 99 * 1024;

// Puts the numbers of blocks into a call whose block shape is known.
void divide(Call& call) {
  call.tile_rows = call.down * kRows - 1 + call.filter;
  call.tile_columns = call.across * kColumns - 1 + call.filter;
  call.blocks_across = int(ceil_div(call.far_w, call.across * kColumns));
  call.blocks_down = int(ceil_div(call.far_h, call.down * kRows));
  call.batches = int(ceil_div(call.samples, call.images));
}

// About the instructions for a channel: products and accesses of far pixels, copies of near ones.
double cost_of(const Call& call) {
  const double far = double(call.images) * call.down * kRows * call.across * kColumns * kChannels;
  const double crowding = call.shared_bytes() > kGoodShared ? 1.5 : 1;
  return call.tiles() * (far * (8.0 + call.taps()) + double(call.near_elements()) * 5) * crowding *
         (1 + 16.0 / call.threads());
}

// The cheapest block shape: up to 16 tiles of threads, an even number to fill warps.
void choose_block(Call& call) {
  constexpr int kMost = kMostThreads * 2 / kChannels;
  Call best{};
  double least = 0;
  for (call.across = 1; call.across <= kMost; ++call.across)
    for (call.down = 1; call.across * call.down <= kMost; ++call.down)
      for (call.images = 1; call.across * call.down * call.images <= kMost; ++call.images) {
        if (call.across * call.down * call.images % 2 != 0) continue;
        const bool whole = call.across * kColumns >= call.far_w && call.down * kRows >= call.far_h;
        if (call.images > 1 && !whole) break;
        divide(call);
        if (call.shared_bytes() > kMostShared) break;
        const double cost = cost_of(call);
        if (least == 0 || cost < least) least = cost, best = call;
      }
  call = best;
}

// Fills the device once, with blocks that take the same number of tiles in turn.
void choose_row_blocks(Call& call) {
  constexpr int kThreadsByRegisters = 512;  // of a multiprocessor
  const int by_memory = int(std::size_t{227 * 1024} / (call.shared_bytes() + 1024));
  const int resident = std::max(1, std::min(kThreadsByRegisters / call.threads(), by_memory));
  const int most = std::max(1, resident * cuda::kMultiprocessors / call.slabs);
  call.row_blocks = int(ceil_div(call.tiles(), ceil_div(call.tiles(), most)));
}

}  // namespace

bool suit(const Task& task) {
  return task.geometry.r > 3 && task.geometry.stride[0] == 1 && task.direction != Direction::backward_weights;
}

Call call_of(const Task& task) {
  const Geometry& g = task.geometry;
  Call call{};
  call.turned = task.direction == Direction::backward_data;
  call.type = task.type();
  call.filter = g.r;
  call.samples = g.n, call.channels = g.c;
  call.near_h = call.turned ? g.p : g.h, call.near_w = call.turned ? g.q : g.w;
  call.far_h = call.turned ? g.h : g.p, call.far_w = call.turned ? g.w : g.q;
  for (int axis = 0; axis < 2; ++axis)
    call.padding[axis] = call.turned ? g.r - 1 - g.padding[axis] : g.padding[axis];
  call.relu = task.relu;
  call.copy_bytes = 16;
  while (call.channels * int(bytes_of(call.type)) % call.copy_bytes != 0) call.copy_bytes /= 2;
  choose_block(call);
  call.slabs = int(ceil_div(g.c, kChannels));
  choose_row_blocks(call);
  return call;
}

}  // namespace convoy::kernels::conv::tiles
