// The depthwise engine's host code: which tasks it takes, the shape of its blocks, and the sums of
// what blocks leave.
#include "kernels/conv2d/cuda/depthwise.h"
#include "kernels/device/cuda_column_sums.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::conv {
namespace {

// The far rows of a thread that a plan's product.tile stands for. More rows need fewer loads and
// more registers.
constexpr int kRowsOfTiles[] = {2, 4};

bool supports_depthwise(const Task& task) {
  const Geometry& g = task.geometry;
  const int filter = g.r, stride = g.stride[0];
  const std::int64_t most = std::int64_t{1} << 30;
  return gemm::device_facts().major >= 8 && g.groups == g.c && g.k == g.c && g.c % 2 == 0 && g.s == filter &&
         (filter == 3 || filter == 5 || filter == 7) && g.stride[1] == stride &&
         (stride == 1 || stride == 2) && g.dilation[0] == 1 && g.dilation[1] == 1 && g.padding[0] < filter &&
         g.padding[1] < filter && g.x_pixels() < most && g.y_pixels() < most;
}

DepthwiseFrame frame_of(const Task& task, int tile) {
  const Geometry& g = task.geometry;
  const bool back = task.direction == Direction::backward_data, transposed = back && g.stride[0] == 2;
  const bool rows = g.stride[0] == 1 && task.direction != Direction::backward_weights;
  return {g.r, g.stride[0], transposed, rows ? kRowsOfTiles[tile] : 2, transposed ? 8 : 7};
}

// Of shared memory: three blocks on a multiprocessor of Hopper, and what any chip has.
constexpr std::size_t kGoodShared = 74 * 1024, kMostShared = 99 * 1024;

// Puts the numbers of blocks into a call whose block shape is known.
void divide(DepthwiseCall& call) {
  const DepthwiseFrame& frame = call.frame;
  const auto blocks = [&](int far, int padding, int extent) {
    return int(cuda::ceil_div(far + (frame.transposed ? padding & 1 : 0), extent));
  };
  call.tile_rows = frame.near(call.down, frame.rows);
  call.tile_columns = frame.near(call.across, frame.columns);
  call.blocks_across = blocks(call.far_w, call.padding[1], call.across * frame.columns);
  call.blocks_down = blocks(call.far_h, call.padding[0], call.down * frame.rows);
  call.batches = int(cuda::ceil_div(call.samples, call.images));
}

// About the instructions for a channel: products and accesses of far pixels, copies of near ones.
double cost_of(const DepthwiseCall& call) {
  const double of_far = 8 + call.taps() / (call.frame.transposed ? 4.0 : 1.0), of_near = 5;
  const double far = double(call.far_elements()), near = double(call.near_elements());
  const double crowding = call.shared_bytes() > kGoodShared ? 1.5 : 1;
  return call.tiles() * (far * of_far + near * of_near) * crowding * (1 + 16.0 / call.threads());
}

// The cheapest block shape: up to 16 tiles of threads, an even number to fill warps.
void choose_block(DepthwiseCall& call) {
  const DepthwiseFrame& frame = call.frame;
  const int most = depthwise_threads(call.direction, frame.filter) * 2 / kDepthwiseChannels;
  DepthwiseCall best;
  double least = 0;
  for (call.across = 1; call.across <= most; ++call.across)
    for (call.down = 1; call.across * call.down <= most; ++call.down)
      for (call.images = 1; call.across * call.down * call.images <= most; ++call.images) {
        if (call.across * call.down * call.images % 2 != 0) continue;
        const bool whole = call.across * frame.columns >= call.far_w && call.down * frame.rows >= call.far_h;
        if (call.images > 1 && !whole) break;
        divide(call);
        if (call.shared_bytes() > kMostShared) break;
        const double cost = cost_of(call);
        if (least == 0 || cost < least) least = cost, best = call;
      }
  call = best;
}

// Fills the device once, with blocks that take the same number of tiles in turn.
void choose_row_blocks(DepthwiseCall& call) {
  // Of a multiprocessor, by the registers of a thread (depthwise.cuh).
  const bool weights = call.direction == Direction::backward_weights;
  const int threads = !weights || call.frame.filter == 3 ? 512 : call.frame.filter == 5 ? 384 : 256;
  const int by_memory = int(std::size_t{227 * 1024} / (call.shared_bytes() + 1024));
  const int resident = std::max(1, std::min(threads / call.threads(), by_memory));
  const int most = std::max(1, resident * cuda::kMultiprocessors / call.slabs);
  const auto rounds = cuda::ceil_div(call.tiles(), most);
  call.row_blocks = int(cuda::ceil_div(call.tiles(), rounds));
}

int copy_bytes_of(int channels, DType type) {
  int bytes = 16;
  while (channels * int(bytes_of(type)) % bytes != 0) bytes /= 2;
  return bytes;
}

DepthwiseCall call_of(const Task& task, int tile) {
  const Geometry& g = task.geometry;
  const bool back = task.direction == Direction::backward_data;
  DepthwiseCall call{};
  call.frame = frame_of(task, tile);
  call.direction = task.direction;
  call.type = task.type();
  call.samples = g.n, call.channels = g.c;
  call.near_h = back ? g.p : g.h, call.near_w = back ? g.q : g.w;
  call.far_h = back ? g.h : g.p, call.far_w = back ? g.w : g.q;
  call.turned = back && !call.frame.transposed;
  for (int axis = 0; axis < 2; ++axis)
    call.padding[axis] = call.turned ? g.r - 1 - g.padding[axis] : g.padding[axis];
  call.relu = task.relu;
  call.copy_bytes = copy_bytes_of(g.c, call.type);
  choose_block(call);
  call.slabs = int(cuda::ceil_div(g.c, kDepthwiseChannels));
  choose_row_blocks(call);
  return call;
}

std::size_t partial_bytes(const Task& task, const DepthwiseCall& call) {
  const int rows = task.direction == Direction::backward_weights ? call.taps() : task.statistics ? 2 : 0;
  return std::size_t(call.row_blocks) * rows * call.channels * sizeof(float);
}

std::vector<Plan> depthwise_candidates(const Task& task) {
  std::vector<Plan> plans;
  const auto add = [&](int tile) {
    Plan plan{Engine::depthwise, {}, partial_bytes(task, call_of(task, tile))};
    plan.product.tile = tile;
    plan.fuses_extra = task.has_extra() && !task.input_norm;
    plans.push_back(plan);
  };
  const bool choice =
      task.geometry.r > 3 && task.geometry.stride[0] == 1 && task.direction != Direction::backward_weights;
  add(choice ? 1 : 0);
  if (choice) add(0);
  return plans;
}

// A block adds the partial sums of 32 channels at one tap: [parts][taps][channels] to
// [channels][taps].
__global__ void __launch_bounds__(256)
    finish_filters(const float* partials, int parts, int taps, int channels, float* to) {
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

Launch bind_depthwise(const Task& task, const Plan& plan, const Buffers& b) {
  DepthwiseCall call = call_of(task, plan.product.tile);
  const bool weights = task.direction == Direction::backward_weights;
  call.near = b.images, call.weights = b.weights, call.far_in = b.dy;
  call.far_out = weights ? nullptr : b.out;
  call.bias = task.direction == Direction::forward && task.bias ? b.bias : nullptr;
  call.mask = task.input_relu ? b.x : nullptr;
  call.control = b.control;
  call.partials = static_cast<float*>(b.workspace);
  const auto start = call.frame.filter == 3   ? start_depthwise<3>
                     : call.frame.filter == 5 ? start_depthwise<5>
                                              : start_depthwise<7>;
  return [=, sums = task.statistics](Stream stream) {
    start(call, sums, stream.get());
    if (weights)
      cuda::launch(finish_filters, dim3(unsigned(call.slabs), unsigned(call.taps())), 256, stream,
                   call.partials, call.row_blocks, call.taps(), call.channels, static_cast<float*>(b.out));
    if (sums)
      cuda::finish_columns(call.partials, 1, call.row_blocks, call.channels, 1,
                           cuda::SumOutputs<double, 2>{{b.sums, b.sums + call.channels}}, stream);
  };
}

}  // namespace

const EngineEntry& depthwise_engine() {
  static const EngineEntry entry{supports_depthwise, depthwise_candidates, bind_depthwise};
  return entry;
}

}  // namespace convoy::kernels::conv
