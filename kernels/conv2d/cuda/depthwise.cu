// Host code of the depthwise engine: it decides which tasks it takes and the shape of its blocks,
// and adds the partial sums that the blocks write.
#include "kernels/conv2d/cuda/depthwise.h"
#include "kernels/conv2d/cuda/depthwise_products.h"
#include "kernels/conv2d/cuda/depthwise_tiles.h"
#include "kernels/device/cuda_column_sums.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::conv {
namespace {

bool supports_depthwise(const Task& task) {
  const Geometry& g = task.geometry;
  const int filter = g.r, stride = g.stride[0];
  const std::int64_t most = std::int64_t{1} << 30;
  return gemm::device_facts().major >= 8 && g.groups == g.c && g.k == g.c && g.c % 2 == 0 && g.s == filter &&
         (filter == 3 || filter == 5 || filter == 7) && g.stride[1] == stride &&
         (stride == 1 || stride == 2) && g.dilation[0] == 1 && g.dilation[1] == 1 && g.padding[0] < filter &&
         g.padding[1] < filter && g.x_pixels() < most && g.y_pixels() < most;
}

// The lanes of a block that leave the fewest idle.
int lanes_for(int pairs) {
  int best = 1;
  double most = 0;
  for (int lanes = std::min(pairs, kDepthwiseLanes); lanes >= std::min(pairs, 16); --lanes) {
    const double busy = double(pairs) / double(cuda::ceil_div(pairs, lanes) * lanes);
    if (busy > most + 0.01) most = busy, best = lanes;
  }
  return best;
}

// Strips that are long enough to amortise the rows under the filter at their beginning, and enough
// of them to fill the device some times.
void choose_rows(DepthwiseCall& call, int columns) {
  const int odd = call.transposed ? 1 : 0;  // strips may begin in the padding
  const auto strips_of = [&](int extent, int padding, int size) {
    return int(cuda::ceil_div(extent + odd * (padding & 1), size));
  };
  const int resident =
      cuda::kMultiprocessors * depthwise_blocks(call.direction, call.filter) * call.strips / call.slabs;
  const int across = strips_of(call.far_w, call.padding[1], columns);
  const int whole = call.far_h + odd * (call.padding[0] & 1);
  int parts = 1;
  while (std::int64_t{call.samples} * across * parts < 4 * std::int64_t{resident} &&
         whole / (2 * parts) >= 4 * call.filter)
    parts *= 2;
  call.rows = int(cuda::ceil_div(whole, parts));
  call.rows += odd * (call.rows & 1);
  call.across = cuda::Divider(across);
  call.down = cuda::Divider(strips_of(call.far_h, call.padding[0], call.rows));
  // Fills the device once, with blocks that take the same number of strips in turn.
  const auto blocks = cuda::ceil_div(call.all_strips(), call.strips);
  const int most = std::max(1, resident / call.strips);
  call.row_blocks = int(cuda::ceil_div(blocks, cuda::ceil_div(blocks, most)));
}

DepthwiseCall call_of(const Task& task) {
  const Geometry& g = task.geometry;
  const bool back = task.direction == Direction::backward_data;
  DepthwiseCall call{};
  call.direction = task.direction;
  call.type = task.type();
  call.filter = g.r, call.stride = g.stride[0];
  call.transposed = back && call.stride == 2, call.turned = back && call.stride == 1;
  call.relu = task.relu;
  call.samples = g.n, call.channels = g.c;
  call.near_h = back ? g.p : g.h, call.near_w = back ? g.q : g.w;
  call.far_h = back ? g.h : g.p, call.far_w = back ? g.w : g.q;
  for (int axis = 0; axis < 2; ++axis)
    call.padding[axis] = call.turned ? g.r - 1 - g.padding[axis] : g.padding[axis];
  call.lanes = lanes_for(g.c / 2);
  call.strips = kDepthwiseThreads / call.lanes;
  call.slabs = int(cuda::ceil_div(g.c / 2, call.lanes));
  choose_rows(call, depthwise_columns(task.direction, call.filter, call.stride));
  return call;
}

std::size_t partial_bytes(const Task& task, int row_blocks) {
  const Geometry& g = task.geometry;
  const int rows = task.direction == Direction::backward_weights ? g.taps() : task.statistics ? 2 : 0;
  return std::size_t(row_blocks) * rows * g.c * sizeof(float);
}

// Measured on an H100: tiles take 0.55 to 0.95 of the time of strips with 7x7, and less with 5x5 on
// small images only.
bool prefers_tiles(const Task& task) {
  const Geometry& g = task.geometry;
  return tiles::suit(task) && (g.r == 7 || (g.p <= 14 && g.q <= 14));
}

// product.tile of plans.
constexpr int kStrips = 0, kTiles = 1, kProducts = 2;

std::vector<Plan> depthwise_candidates(const Task& task) {
  Plan strips{Engine::depthwise, {}, partial_bytes(task, call_of(task).row_blocks)};
  strips.product.tile = kStrips;
  strips.fuses_extra = task.has_extra() && !task.input_norm;
  std::vector<Plan> plans{strips};
  const auto add = [&](int tile, int row_blocks, bool preferred) {
    Plan plan = strips;
    plan.product.tile = tile;
    plan.workspace_bytes = partial_bytes(task, row_blocks);
    plans.insert(preferred ? plans.begin() : plans.end(), plan);
  };
  if (tiles::suit(task)) add(kTiles, tiles::call_of(task).row_blocks, prefers_tiles(task));
  if (products::suit(task)) add(kProducts, products::call_of(task).row_blocks, task.geometry.r > 3);
  return plans;
}

// A block adds the partial sums of 32 channels at one tap: [parts][taps][channels] to
// [channels][taps].
__global__ void __launch_bounds__(256) finish_filters(const float* partials, int parts, int taps,
                                                      int channels, float* to, std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, partials, to);
  __shared__ double shared[8][32];
  const int x = int(threadIdx.x) % 32, y = int(threadIdx.x) / 32;
  const int channel = int(blockIdx.x) * 32 + x, tap = int(blockIdx.y);
  double sum = 0;
  if (channel < channels)
#pragma unroll 8
    for (int part = y; part < parts; part += 8)
      sum += partials[(std::int64_t{part} * taps + tap) * channels + channel];
  shared[y][x] = sum;
  __syncthreads();
  if (y > 0 || channel >= channels) return;
  for (int other = 1; other < 8; ++other) sum += shared[other][x];
  to[std::int64_t{channel} * taps + tap] = float(sum);
}

// Puts the addresses into a call of strips or tiles.
template <typename Call>
Call with_buffers(Call call, const Task& task, const Buffers& b) {
  call.near = b.images, call.weights = b.weights;
  call.far_out = task.direction == Direction::backward_weights ? nullptr : b.out;
  call.bias = task.direction == Direction::forward && task.bias ? b.bias : nullptr;
  call.mask = task.input_relu ? b.x : nullptr;
  call.control = b.control;
  call.partials = static_cast<float*>(b.workspace);
  call.members = b.members;
  return call;
}

template <typename Call>
void finish_statistics(const Call& call, double* sums, Stream stream) {
  cuda::finish_columns(call.partials, 1, call.row_blocks, call.channels, 1,
                       cuda::SumOutputs<double, 2>{{sums, sums + call.channels}}, stream, call.members);
}

Launch bind_tiles(const Task& task, const Buffers& b) {
  const tiles::Call call = with_buffers(tiles::call_of(task), task, b);
  const auto start = call.filter == 5 ? tiles::start<5> : tiles::start<7>;
  return [=, sums = task.statistics](Stream stream) {
    start(call, sums, stream.get());
    if (sums) finish_statistics(call, b.sums, stream);
  };
}

// Strips and products.
template <typename Call>
Launch bind_call(Call call, void (*start)(const Call&, bool, cudaStream_t), const Task& task,
                 const Buffers& b) {
  call.far_in = b.dy;
  const bool weights = task.direction == Direction::backward_weights;
  return [=, sums = task.statistics](Stream stream) {
    start(call, sums, stream.get());
    if (weights)
      cuda::launch(finish_filters, dim3(unsigned(cuda::ceil_div(call.channels, 32)), unsigned(call.taps())),
                   256, stream, call.members, call.partials, call.row_blocks, call.taps(), call.channels,
                   static_cast<float*>(b.out));
    if (sums) finish_statistics(call, b.sums, stream);
  };
}

Launch bind_strips(const Task& task, const Buffers& b) {
  const int filter = task.geometry.r;
  return bind_call(with_buffers(call_of(task), task, b),
                   filter == 3   ? start_depthwise<3>
                   : filter == 5 ? start_depthwise<5>
                                 : start_depthwise<7>,
                   task, b);
}

Launch bind_products(const Task& task, const Buffers& b) {
  const int filter = task.geometry.r;
  return bind_call(with_buffers(products::call_of(task), task, b),
                   filter == 3   ? products::start<3>
                   : filter == 5 ? products::start<5>
                                 : products::start<7>,
                   task, b);
}

Launch bind_depthwise(const Task& task, const Plan& plan, const Buffers& b) {
  if (plan.product.tile == kProducts) return bind_products(task, b);
  return plan.product.tile == kTiles ? bind_tiles(task, b) : bind_strips(task, b);
}

}  // namespace

const EngineEntry& depthwise_engine() {
  static const EngineEntry entry{supports_depthwise, depthwise_candidates, bind_depthwise};
  return entry;
}

}  // namespace convoy::kernels::conv
