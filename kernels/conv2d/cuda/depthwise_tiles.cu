// Chooses the tiles and the shared memory of a block (depthwise_tiles.h).
#include <limits>

#include "kernels/conv2d/cuda/depthwise_tiles.h"
#include "kernels/device/cuda_kernel.h"

namespace convoy::kernels::conv::tiles {
namespace {

// Bytes of shared memory for one block. Three blocks with kGoodShared each fit on a multiprocessor
// of Hopper. Every supported chip can give a block kMostShared.
constexpr std::size_t kGoodShared = 74 * 1024, kMostShared = 99 * 1024;

// Estimates the number of instructions for a slab (range of channels) of the output.
double cost_of(const Call& call) {
  const double outputs = double(call.tiling.patches()) * kRows * kColumns * kChannels;
  const double crowding = call.shared_bytes() > kGoodShared ? 1.5 : 1;
  return call.tiling.tiles() * (outputs * (8.0 + call.taps()) + double(call.input_elements()) * 5) *
         crowding * (1 + 16.0 / call.threads());
}

std::optional<double> complete(Call& call) {
  // Two patches fill a warp, so an odd number of patches would leave half a warp idle.
  if (call.tiling.patches() % 2 != 0) return std::numeric_limits<double>::infinity();
  call.input_rows = call.tiling.down * kRows - 1 + call.filter;
  call.input_columns = call.tiling.across * kColumns - 1 + call.filter;
  if (call.shared_bytes() > kMostShared) return {};
  return cost_of(call);
}

// Returns how many blocks per slab of channels the device can run at the same time.
int resident_blocks(const Call& call) {
  constexpr int kThreadsByRegisters = 512;
  const int by_memory = int(std::size_t{227 * 1024} / (call.shared_bytes() + 1024));
  const int resident = std::max(1, std::min(kThreadsByRegisters / call.threads(), by_memory));
  return resident * cuda::kMultiprocessors / call.slabs;
}

}  // namespace

bool supports(const Task& task) {
  return task.geometry.r > 3 && task.geometry.stride[0] == 1 && task.direction != Direction::backward_weights;
}

Call make_call(const Task& task) {
  Call call{{depthwise_shape(task)}};
  call.copy_bytes = 16;
  while (call.channels * int(bytes_of(call.type)) % call.copy_bytes != 0) call.copy_bytes /= 2;
  choose_tiling(call, kMostThreads * 2 / kChannels, kRows, kColumns, complete);
  call.slabs = int(cuda::ceil_div(call.channels, kChannels));
  call.row_blocks = even_blocks(call.tiling.tiles(), resident_blocks(call));
  return call;
}

}  // namespace convoy::kernels::conv::tiles
