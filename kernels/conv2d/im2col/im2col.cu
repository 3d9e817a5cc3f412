// Host code of the im2col and folded engines (engines.h): makes the tensor maps through which TMA
// reads windows, and launches the kernels.
#include <algorithm>
#include <memory>
#include <stdexcept>

#include "kernels/conv2d/cuda/filters.h"
#include "kernels/conv2d/cuda/joined_pixels.h"
#include "kernels/conv2d/cuda/norm_sums.h"
#include "kernels/conv2d/cuda/space_to_depth.h"
#include "kernels/conv2d/im2col/im2col_plan.cuh"
#include "kernels/device/cuda_error.h"
#include "kernels/gemm/common/epilogue.cuh"

namespace convoy::kernels::conv {
namespace {

using gemm::ceil_div;
using gemm::Math;

WindowLoad window_load(const View& view, int channels, int depth) {
  WindowLoad load{};
  load.across = cuda::Divider(view.map.across);
  load.positions = cuda::Divider(std::int64_t{view.map.down} * view.map.across);
  load.blocks = cuda::Divider(ceil_div(channels, depth));
  load.taps = cuda::Divider(view.taps[1]);
  for (int axis = 0; axis < 2; ++axis) {
    load.first[axis] = view.map.first[axis];
    load.step[axis] = view.map.step[axis];
    load.reach[axis] = view.reach[axis];
  }
  load.images = int(view.map.n);
  load.columns = view.blocks(channels, depth);
  return load;
}

// Makes the tensor map by which TMA reads the windows of images, in boxes of `pixels` positions by
// `channels` channels.
MemberMap images_map(const MapMaker& maps, const Task& task, const View& view, const void* images, int pixels,
                     int channels, Swizzle swizzle) {
  if (is_matrix(task, view))
    return maps.tiled(view.map.type, images, {view.map.c, view.rows()}, {view.map.c},
                      {unsigned(channels), unsigned(pixels)}, swizzle);
  Im2colMap map = view.map;
  map.data = images;
  if (map.pitch_w == 0) map.pitch_w = map.c;
  if (map.pitch_h == 0) map.pitch_h = map.pitch_w * map.w;
  map.pitch_n = map.pitch_h * map.h;
  map.pixels = pixels;
  map.channels = channels;
  map.swizzle = swizzle;
  return maps.im2col(map);
}

// Makes the tensor map by which TMA reads the pixels of windows, in boxes of `box_pixels` pixels by
// `box_channels` channels.
MemberMap pixels_map(const MapMaker& maps, const gemm::Sm90Tile& tile, const View& view, const void* data,
                     std::int64_t channels, int box_pixels, int box_channels) {
  if (tile.taps == 1)
    return maps.tiled(view.map.type, data, {channels, view.rows()}, {channels},
                      {unsigned(box_channels), unsigned(box_pixels)});
  // TMA reads zeros in the gap that seen_by() adds after each row, because the gap is outside the
  // tensor.
  Im2colMap map = view.map;
  map.data = data;
  map.h = map.down, map.w = map.across - gemm::gap_of(tile), map.c = channels;
  map.pitch_w = channels, map.pitch_h = map.w * channels, map.pitch_n = map.h * map.pitch_h;
  map.first[0] = map.first[1] = 0;
  map.pixels = box_pixels, map.channels = box_channels;
  return maps.im2col(map);
}

PackSteps pack_steps(const Task& task, int tile) {
  const PackedFilters filters = filters_of(task, tile);
  const GroupPacking& packing = filters.packing;
  if (packing.count == 1) return {};
  const gemm::Sm90Tile& of = tile_at(task, tile);
  switch (task.direction) {
    case Direction::forward:
      return {cuda::Divider(packing.k / of.columns), packing.c, 0, 0};
    case Direction::backward_data:
      if (filters.transposed) return {cuda::Divider(packing.c / of.columns), packing.k, 0, 0};
      return {cuda::Divider(packing.c / of.columns), packing.k, filters.rows, packing.c};
    case Direction::backward_weights:
      return {cuda::Divider(packing.k / (gradient_is_transposed(task, tile) ? of.columns : of.rows)),
              packing.c, 0, 0};
  }
  throw std::logic_error("unknown direction");
}

// Returns how many filters (forward) or channels of x (backward_data) the box of a stage has: the
// columns of the tile, or fewer if there are no more. TMA takes longer for rows outside a tensor.
int filters_in_box(const Task& task, const gemm::Sm90Tile& tile, bool n_contiguous) {
  const int n = task.direction == Direction::forward ? task.geometry.k : task.geometry.c;
  if (task.geometry.groups > 1 || n >= tile.columns) return tile.columns;
  if (n_contiguous) return tile.columns == 64 && n <= 32 ? 32 : tile.columns;
  return std::min(int(ceil_div(n, 8)) * 8, tile.columns);
}

// Makes the tensor map of filters [outer][taps][inner].
MemberMap filters_map(const MapMaker& maps, DType type, const void* filters, std::int64_t outer,
                      std::int64_t taps, std::int64_t inner, unsigned box_inner, unsigned box_outer,
                      Swizzle swizzle = Swizzle::bytes_128) {
  return maps.tiled(type, filters, {inner, taps, outer}, {inner, taps * inner}, {box_inner, 1, box_outer},
                    swizzle);
}

// Returns the arguments of one kernel launch, which computes one View (views.cuh).
Sm90ConvCall describe(const Task& task, const Plan& plan, const View& whole, const Buffers& b,
                      const Im2colWorkspace& workspace, const MapMaker& maps) {
  const gemm::Sm90Tile& tile = tile_at(task, tile_of(plan));
  const View view = seen_by(tile, whole);
  const Geometry& g = task.geometry;
  const int depth = depth_of(task), channels = box_channels(task, tile), splits = plan.product.splits;
  const Swizzle swizzle = tile.channels32 == gemm::Channels32::none ? Swizzle::bytes_128 : Swizzle::bytes_64;
  const bool weights = task.direction == Direction::backward_weights, folds = plan.engine == Engine::folded;
  const bool rearranged = rearranges_filters(task, tile_of(plan));
  const gemm::Problem product = padded_product(task, whole, tile_of(plan));
  const Result result = result_of(task, whole, tile_of(plan));
  Sm90ConvCall call{};
  call.members = b.members;
  call.tile = tile_of(plan);
  call.schedule = gemm::sm90_schedule(product, tile, splits);
  call.blocks = std::min(call.schedule.work_items(), gemm::device_facts().multiprocessors);
  call.window = window_load(view, window_channels(task, view, tile_of(plan)), channels);
  call.packing = pack_steps(task, tile_of(plan));
  call.filter_taps = view.filter_taps;
  call.window.matrix = is_matrix(task, view);
  if (task.input_affine) call.affine = {b.affine, g.c, task.input_affine->least, task.input_affine->most};
  call.images = images_map(maps, task, view, folds ? workspace.images : b.images,
                           (weights ? depth : tile.rows) + tile.taps - 1, channels, swizzle);
  call.m = int(product.m);
  call.n = int(product.n);
  const DType type = task.type();
  if (weights) {
    call.other = pixels_map(maps, tile, view, b.dy, g.k, depth, depth);
    if (gradient_is_transposed(task, call.tile))
      call.half = pixels_map(maps, tile, view, b.dy, g.k, depth, depth / 2);
    float* const out = splits > 1            ? workspace.partial
                       : folds || rearranged ? workspace.gradient
                                             : static_cast<float*>(b.out);
    const std::int64_t taps = view.taps[0] * view.taps[1], c = gradient_channels(task, view, tile_of(plan));
    if (is_mn_major(task)) {
      call.gradient = out, call.taps = int(taps), call.channels = int(c);
      return call;
    }
    call.target.blocks = call.window.blocks;
    if (gradient_is_transposed(task, call.tile)) {
      call.c = maps.tiled(DType::f32, workspace.partial, {g.k, c, taps, splits},
                          {g.k, c * g.k, taps * c * g.k}, {32, 64, 1, 1});
      call.target.kind = StoreTarget::Kind::transposed_filters;
      return call;
    }
    call.c =
        maps.tiled(DType::f32, out, {c, taps, g.k, splits}, {c, taps * c, g.k * taps * c}, {32, 1, 64, 1});
    call.target.kind = StoreTarget::Kind::filters;
    return call;
  }
  // If n is contiguous, a row in shared memory has room for 64 channels, even if TMA's box has only
  // 32 channels.
  const bool n_contiguous =
      task.direction == Direction::backward_data && !filters_of(task, call.tile).transposed;
  const int columns = filters_in_box(task, tile, n_contiguous);
  call.left_out_bytes = int((tile.columns - columns) * channels * bytes_of(type));
  if (folds) {
    call.other =
        filters_map(maps, type, workspace.filters, g.k, view.taps[0], view.map.c, depth, unsigned(columns));
  } else {
    const PackedFilters filters = filters_of(task, call.tile);
    call.other = filters_map(maps, type, rearranged || filters.transposed ? workspace.filters : b.weights,
                             std::int64_t{filters.packing.count} * filters.rows, g.taps(), filters.inner,
                             n_contiguous ? std::min(64, columns) : channels,
                             n_contiguous ? channels : columns, n_contiguous ? Swizzle::bytes_128 : swizzle);
  }
  if (splits > 1) {
    call.c = maps.tiled(DType::f32, workspace.partial, {result.n, result.m, splits},
                        {result.n, result.n * result.m}, {32, 64, 1});
    return call;
  }
  call.bf16 = type == DType::bf16;
  call.bias = repeats_bias(task) ? workspace.bias : b.bias;
  call.relu = task.relu;
  if (masks(task, splits)) call.mask = static_cast<const std::uint8_t*>(b.x);
  if (sums(task, splits) || norms(task, splits)) {
    call.sum_slots = workspace.slots;
    call.target.control = b.control;
    call.target.sample_rows = view.map.down * view.map.across;
  }
  call.target.across = call.window.across;
  call.target.positions = call.window.positions;
  call.target.gap = gemm::gap_of(tile);
  call.plain = static_cast<std::uint8_t*>(b.out);
  if (norms(task, splits)) call.mask = b.norm.mask;
  const void* const operands[] = {b.norm.x, b.norm.dy2};
  const auto box = unsigned(128 / bytes_of(type));
  if (!strided(task)) {
    call.c = maps.tiled(type, b.out, {result.n, result.m, 1}, {result.n, result.n * result.m}, {box, 64, 1});
    if (norms(task, splits))
      for (int i = 0; i < 2; ++i)
        call.norm_operands[i] = pixels_map(maps, tile, view, operands[i], result.n, 64, int(box));
    return call;
  }
  Im2colMap out;
  out.type = type;
  out.data = static_cast<std::uint8_t*>(b.out) + view.out_offset * std::int64_t(bytes_of(type));
  out.n = g.n, out.h = view.map.down, out.w = view.map.across, out.c = g.c;
  out.pitch_w = std::int64_t{g.stride[1]} * g.c;
  out.pitch_h = std::int64_t{g.stride[0]} * g.w * g.c;
  out.pitch_n = std::int64_t{g.h} * g.w * g.c;
  out.down = view.map.down, out.across = view.map.across;
  out.pixels = 64, out.channels = int(box);
  call.c = maps.im2col(out);
  call.target.kind = StoreTarget::Kind::positions;
  return call;
}

// Sets `bytes` bytes to zero in the memory of each member (MemberLayout, kernels/device/kernel.h).
// `data` is the address in the memory of member 0.
void clear(void* data, std::size_t bytes, cudaStream_t stream, MemberLayout members) {
  constexpr std::ptrdiff_t kMostPitch = (std::ptrdiff_t{1} << 31) - 1;
  if (members.count > 1 && members.stride <= kMostPitch) {
    CONVOY_CUDA(
        cudaMemset2DAsync(data, std::size_t(members.stride), 0, bytes, std::size_t(members.count), stream));
    return;
  }
  for (int member = 0; member < members.count; ++member)
    CONVOY_CUDA(
        cudaMemsetAsync(static_cast<std::uint8_t*>(data) + member * members.stride, 0, bytes, stream));
}

using Sm90Start = void (*)(const Sm90ConvCall&, cudaStream_t);
Sm90Start start_of(const Task& task, int tile, int splits) {
  if (task.input_affine) {
    if (task.direction == Direction::backward_weights) return sm90_conv_backward_weights_affine;
    return sums(task, splits) ? sm90_conv_forward_affine_sums : sm90_conv_forward_affine;
  }
  const bool tf32 = task.math == Math::tf32;
  if (is_mn_major(task)) return sm90_conv_backward_weights_tf32;
  if (norms(task, splits)) return tf32 ? sm90_conv_backward_data_norm_tf32 : sm90_conv_backward_data_norm;
  if (masks(task, splits)) return tf32 ? sm90_conv_backward_data_mask_tf32 : sm90_conv_backward_data_mask;
  if (tf32) return sums(task, splits) ? sm90_conv_forward_sums_tf32 : sm90_conv_forward_tf32;
  if (task.direction == Direction::forward || transposes(task, tile))
    return sums(task, splits) ? sm90_conv_forward_sums : sm90_conv_forward;
  return task.direction == Direction::backward_data ? sm90_conv_backward_data : sm90_conv_backward_weights;
}

Launch bind_windows(const Task& task, const Plan& plan_of_one, const Buffers& b) {
  const Plan plan = plan_for_members(task, plan_of_one, b.members.count);
  const Geometry& g = task.geometry;
  const Im2colWorkspace workspace = carve(task, plan.engine, tile_of(plan), plan.product.splits, b.workspace);
  const bool weights = task.direction == Direction::backward_weights, folds = plan.engine == Engine::folded;
  const bool rearranged = rearranges_filters(task, tile_of(plan)),
             turns = !rearranged && transposes(task, tile_of(plan));
  const PackedFilters filters = filters_of(task, tile_of(plan));
  const SpaceToDepth fold = folds ? space_to_depth_of(task, depth_of(task)) : SpaceToDepth{};
  const std::vector<View> views = views_of(task, plan.engine);
  const MapMaker maps(b.members);
  auto calls = std::make_shared<std::vector<Sm90ConvCall>>();
  bool gaps = false;
  for (const View& view : views) {
    if (view.rows() == 0) continue;
    if (empty(view))
      gaps = true;
    else
      calls->push_back(describe(task, plan, view, b, workspace, maps));
  }
  const Result result = result_of(task, views.front(), tile_of(plan));
  // If k is split, another kernel adds up the splits and applies this epilogue.
  gemm::Epilogue epilogue;
  epilogue.c = weights && (folds || rearranged) ? workspace.gradient : b.out;
  epilogue.ldc = result.n;
  epilogue.bias = repeats_bias(task) ? workspace.bias : b.bias;
  epilogue.relu = task.relu;
  if (task.input_relu) epilogue.mask = b.x;
  epilogue.bf16 = !weights && task.math == Math::bf16;
  const bool in_norm = norms(task, plan.product.splits);
  // Each of the two consumer warpgroups of a block (sm90_kernel.cuh) writes its own slot of column
  // sums.
  const int slots = in_norm || sums(task, plan.product.splits) ? 2 * calls->front().blocks : 0;
  const std::size_t dx_bytes = gaps ? std::size_t(g.x_pixels()) * g.c * bytes_of(task.type()) : 0;
  return [=, splits = plan.product.splits, transposes_gradient = gradient_is_transposed(task, tile_of(plan)),
          start = start_of(task, tile_of(plan), plan.product.splits), held = maps.held(),
          calls = std::shared_ptr<const std::vector<Sm90ConvCall>>(calls)](Stream on) {
    const cudaStream_t stream = on.get();
    if (dx_bytes > 0) clear(b.out, dx_bytes, stream, b.members);
    if (folds) fold_images(task, fold, b.images, workspace.images, on, b.members);
    if (folds && !weights) fold_filters(task, fold, b.weights, workspace.filters, on, b.members);
    if (rearranged && !weights)
      pack_filters(g, filters, b.weights, workspace.filters, repeats_bias(task) ? b.bias : nullptr,
                   workspace.bias, bytes_of(task.type()), on, b.members);
    if (turns)
      transpose_filters(b.weights, workspace.filters, g.k, g.taps(), g.c, bytes_of(task.type()), on,
                        b.members);
    for (const Sm90ConvCall& call : *calls) start(call, stream);
    const auto add_slots = [&](const auto* of_blocks) {
      gemm::sum_slots(of_blocks, slots, task.joined ? g.k / g.groups : g.k, b.sums, stream, b.members,
                      task.joined ? g.groups : 1);
    };
    if (in_norm)
      finish_norm_sums(static_cast<const float*>(workspace.slots), slots, g.c, g.h * g.w, b.norm, b.control,
                       stream, b.members);
    else if (slots > 0)
      has_double_slots(task) ? add_slots(static_cast<const double*>(workspace.slots))
                             : add_slots(static_cast<const float*>(workspace.slots));
    if (transposes_gradient)
      add_transposed(workspace.partial, splits, result.n, g.k, static_cast<float*>(epilogue.c), on,
                     b.members);
    else if (splits > 1)
      gemm::sum_partials(epilogue, workspace.partial, splits, result.m, result.n, result.n, stream,
                         b.members);
    if (folds && weights)
      unfold_gradient(task, fold, workspace.gradient, static_cast<float*>(b.out), on, b.members);
    if (rearranged && weights)
      unpack_gradient(g, filters, workspace.gradient, static_cast<float*>(b.out), on, b.members);
  };
}

template <Engine engine>
const EngineEntry& window_engine() {
  static constexpr auto seen = [](const Task& task) {
    return engine == Engine::im2col ? with_joined_pixels(task) : task;
  };
  static const EngineEntry entry{
      [](const Task& task) { return suits_tma(seen(task), engine); },
      [](const Task& task) { return window_candidates(seen(task), engine); },
      [](const Task& task, const Plan& plan, const Buffers& b) { return bind_windows(seen(task), plan, b); }};
  return entry;
}

}  // namespace

const EngineEntry& im2col_engine() { return window_engine<Engine::im2col>(); }
const EngineEntry& folded_engine() { return window_engine<Engine::folded>(); }

}  // namespace convoy::kernels::conv
