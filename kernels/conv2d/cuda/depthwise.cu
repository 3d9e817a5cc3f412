// Host code of the depthwise engine: which tasks it supports, and which family of kernels computes
// a task. Also adds up the partial sums that thread blocks write.
#include "kernels/conv2d/cuda/depthwise.h"
#include "kernels/conv2d/cuda/depthwise_diagonal.h"
#include "kernels/conv2d/cuda/depthwise_strips.h"
#include "kernels/conv2d/cuda/depthwise_tiles.h"
#include "kernels/device/cuda_column_sums.cuh"
#include "kernels/device/cuda_shifted_sums.cuh"
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

std::size_t partial_bytes(const Task& task, int row_blocks) {
  const Geometry& g = task.geometry;
  const std::size_t bytes = task.direction == Direction::backward_weights ? g.taps() * sizeof(float)
                            : !task.statistics                            ? 0
                            : task.type() == DType::f32                   ? 2 * sizeof(cuda::MomentSum<4>)
                                                                          : 2 * sizeof(cuda::MomentSum<2>);
  return std::size_t(row_blocks) * std::size_t(g.c) * bytes;
}

// Returns whether tiles are faster than strips, as measured on an H100: always with filters of 7x7,
// and with 5x5 if images are small. On Hopper in bf16, diagonal products are faster than both.
bool prefers_tiles(const Task& task) {
  const Geometry& g = task.geometry;
  return g.r == 7 || (g.p <= 14 && g.q <= 14);
}

// The family of kernels that computes a task. Plan::product.tile is one of these numbers.
constexpr int kStrips = 0, kTiles = 1, kDiagonal = 2, kDiagonalInClusters = 3;

std::vector<Plan> depthwise_candidates(const Task& task) {
  std::vector<Plan> plans;
  const auto add = [&](int family, int row_blocks, bool preferred) {
    Plan plan{Engine::depthwise, {}, partial_bytes(task, row_blocks)};
    plan.product.tile = family;
    plan.fuses_extra = task.has_extra() && !task.input_norm;
    plans.insert(preferred ? plans.begin() : plans.end(), plan);
  };
  add(kStrips, strips::make_call(task).row_blocks, true);
  if (tiles::supports(task)) add(kTiles, tiles::make_call(task).row_blocks, prefers_tiles(task));
  if (!diagonal::supports(task)) return plans;
  add(kDiagonal, diagonal::make_call(task, false).row_blocks, true);
  const diagonal::Call in_clusters = diagonal::make_call(task, true);
  if (in_clusters.cluster > 1)
    add(kDiagonalInClusters, in_clusters.row_blocks, diagonal::prefers_clusters(task));
  return plans;
}

// Adds up the partial sums of the filters' gradient, [parts][taps][channels], over the parts: each
// block of the convolution's kernel has written one part. Writes the result as [channels][taps]. A
// block computes 32 channels at one tap.
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

DepthwiseOperands operands_of(const Task& task, const Buffers& b) {
  const bool forward = task.direction == Direction::forward;
  const bool weights = task.direction == Direction::backward_weights;
  DepthwiseOperands operands;
  operands.input = b.images, operands.weights = b.weights;
  operands.dy = b.dy, operands.output = weights ? nullptr : b.out;
  operands.bias = forward && task.bias ? b.bias : nullptr;
  operands.relu = task.relu;
  operands.mask = task.input_relu ? b.x : nullptr;
  operands.control = b.control;
  operands.partials = b.workspace;
  operands.members = b.members;
  return operands;
}

// Returns a launch of the call's kernel, followed by the kernels that add up the partial sums of
// the kernel's blocks.
template <typename Call>
Launch bind_call(Call call, void (*start)(const Call&, bool, cudaStream_t), const Task& task,
                 const Buffers& b) {
  call.operands = operands_of(task, b);
  const MapMaker maps(b.members);
  if constexpr (std::is_same_v<Call, diagonal::Call>) diagonal::set_maps(call, maps);
  return [=, held = maps.held(), sums = task.statistics](Stream stream) {
    const DepthwiseOperands& operands = call.operands;
    start(call, sums, stream.get());
    const auto add_sums = [&](const auto* partials) {
      cuda::finish_columns(partials, 1, call.row_blocks, call.channels, 1,
                           cuda::SumOutputs<double, 2>{{b.sums, b.sums + call.channels}}, stream,
                           operands.members);
    };
    if (call.direction == Direction::backward_weights)
      cuda::launch(finish_filters, dim3(unsigned(cuda::ceil_div(call.channels, 32)), unsigned(call.taps())),
                   256, stream, operands.members, static_cast<const float*>(operands.partials),
                   call.row_blocks, call.taps(), call.channels, static_cast<float*>(b.out));
    if (sums)
      call.type == DType::f32 ? add_sums(static_cast<const cuda::MomentSum<4>*>(operands.partials))
                              : add_sums(static_cast<const cuda::MomentSum<2>*>(operands.partials));
  };
}

Launch bind_strips(const Task& task, const Buffers& b) {
  const int filter = task.geometry.r;
  const auto start = filter == 3 ? strips::start<3> : filter == 5 ? strips::start<5> : strips::start<7>;
  return bind_call(strips::make_call(task), start, task, b);
}

Launch bind_tiles(const Task& task, const Buffers& b) {
  return bind_call(tiles::make_call(task), task.geometry.r == 5 ? tiles::start<5> : tiles::start<7>, task, b);
}

Launch bind_diagonal(const Task& task, bool clusters, const Buffers& b) {
  const int filter = task.geometry.r;
  const auto start = filter == 3 ? diagonal::start<3> : filter == 5 ? diagonal::start<5> : diagonal::start<7>;
  return bind_call(diagonal::make_call(task, clusters), start, task, b);
}

Launch bind_depthwise(const Task& task, const Plan& plan, const Buffers& b) {
  if (plan.product.tile >= kDiagonal) return bind_diagonal(task, plan.product.tile == kDiagonalInClusters, b);
  return plan.product.tile == kTiles ? bind_tiles(task, b) : bind_strips(task, b);
}

}  // namespace

DepthwiseShape depthwise_shape(const Task& task) {
  const Geometry& g = task.geometry;
  const bool back = task.direction == Direction::backward_data;
  DepthwiseShape shape{};
  shape.direction = task.direction, shape.type = task.type();
  shape.filter = g.r, shape.stride = g.stride[0];
  shape.flipped = back && shape.stride == 1, shape.transposed = back && shape.stride == 2;
  shape.samples = g.n, shape.channels = g.c;
  shape.input_h = back ? g.p : g.h, shape.input_w = back ? g.q : g.w;
  shape.output_h = back ? g.h : g.p, shape.output_w = back ? g.w : g.q;
  for (int axis = 0; axis < 2; ++axis)
    shape.padding[axis] = shape.flipped ? g.r - 1 - g.padding[axis] : g.padding[axis];
  return shape;
}

const EngineEntry& depthwise_engine() {
  static const EngineEntry entry{supports_depthwise, depthwise_candidates, bind_depthwise};
  return entry;
}

}  // namespace convoy::kernels::conv
