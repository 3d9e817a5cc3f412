// Host side of the im2col and folded engines: the tensor maps through which the copy engine sees windows, the tile shape
// and pieces of k, the launches.
#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/conv2d/filters.h"
#include "kernels/conv2d/fold.h"
#include "kernels/conv2d/views.cuh"
#include "kernels/device/cuda_error.h"
#include "kernels/gemm/epilogue.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::conv {
namespace {

using gemm::ceil_div;
using gemm::kCopiedTiles;
using gemm::kSm90Tiles;
using gemm::Math;

// Whether the products are mma.sync's: wgmma takes no tf32 operands whose k is not contiguous.
bool by_mma_sync(const Task& task) {
  return task.math == Math::tf32 && task.direction == Direction::backward_weights;
}
int tile_count(const Task& task) {
  return int(by_mma_sync(task) ? std::size(kCopiedTiles) : std::size(kSm90Tiles));
}
const gemm::Sm90Tile& tile_at(const Task& task, int tile) {
  return by_mma_sync(task) ? kCopiedTiles[tile] : kSm90Tiles[tile];
}
gemm::Plan product_plan(const Task& task, int tile, int splits) {
  if (by_mma_sync(task)) return {gemm::Rung::mma_sync, gemm::kFirstCopiedTile + tile, splits, 0};
  return {gemm::Rung::wgmma, tile, splits, 0};
}
int tile_of(const Plan& plan) {
  return plan.product.tile - (plan.product.rung == gemm::Rung::mma_sync ? gemm::kFirstCopiedTile : 0);
}

bool empty(const View& view) { return view.taps[0] == 0 || view.taps[1] == 0; }
bool strided(const Task& task) {
  return task.direction == Direction::backward_data &&
         (task.geometry.stride[0] > 1 || task.geometry.stride[1] > 1);
}

// Whether the gradient comes out with its filters in the columns, pieces of k or not, and is turned as they are added.
bool turned(const Task& task, int tile) {
  return task.direction == Direction::backward_weights && gemm::is_narrow(tile_at(task, tile));
}

// Whether backward_data reads a transposed copy of the filters, k contiguous: tf32 must, narrow tiles are faster for it.
bool transposes(const Task& task, int tile) {
  return task.direction == Direction::backward_data &&
         (task.math == Math::tf32 || gemm::is_narrow(tile_at(task, tile)));
}

// The product as the kernel runs it: whole blocks of channels.
gemm::Problem padded_product(const Task& task, const View& view, int tile) {
  const int depth = depth_of(task);
  gemm::Problem product;
  product.math = task.math;
  const Geometry& g = task.geometry;
  if (task.direction == Direction::backward_weights) {
    product.m = g.k, product.n = std::int64_t{view.blocks(depth)} * depth, product.k = view.rows();
    if (turned(task, tile)) std::swap(product.m, product.n);
  } else {
    product.output = task.type();
    product.m = view.rows();
    product.n = task.direction == Direction::forward ? g.k : g.c;
    product.k = std::int64_t{view.blocks(depth)} * depth;
  }
  return product.checked();
}

// The result, or one piece of it, as a matrix without gaps.
struct Result {
  std::int64_t m, n;
};
Result result_of(const Task& task, const View& view) {
  const Geometry& g = task.geometry;
  if (task.direction == Direction::backward_weights)
    return {g.k, std::int64_t{view.taps[0]} * view.taps[1] * view.map.c};
  return {view.rows(), task.direction == Direction::forward ? g.k : g.c};
}

// Whether the kernel that writes y also takes its statistics: it must see whole sums, and there is one for bf16 alone.
bool sums(const Task& task, int splits) {
  return task.statistics && task.math == Math::bf16 && splits == 1 &&
         2 * gemm::device_facts().multiprocessors <= gemm::kSumSlots;
}

struct Workspace {
  float *partial, *gradient, *slots;  // pieces of k; the folded filters' gradient; sums of y's columns
  std::uint8_t *filters, *images;
  std::size_t bytes;
};
Workspace carve(const Task& task, Engine engine, int tile, int splits, void* base) {
  gemm::Carver carver(base);
  const Geometry& g = task.geometry;
  const View view = views_of(task, engine).front();
  const Result result = result_of(task, view);
  const std::size_t type = bytes_of(task.type());
  const bool folds = engine == Engine::folded, weights = task.direction == Direction::backward_weights;
  const Fold fold = folds ? fold_of(task, depth_of(task)) : Fold{};
  Workspace workspace{};
  const bool in_pieces = splits > 1 || turned(task, tile);
  workspace.partial = carver.take<float>(in_pieces ? std::size_t(splits) * result.m * result.n : 0);
  workspace.gradient = carver.take<float>(folds && weights ? fold.filter_elements(g) : 0);
  workspace.slots = carver.take<float>(sums(task, splits) ? gemm::slot_elements(g.k, gemm::kSumSlots) : 0);
  const std::size_t filters = folds && !weights        ? fold.filter_elements(g)
                              : transposes(task, tile) ? std::size_t(g.k) * g.taps() * g.c
                                                       : 0;
  workspace.filters = carver.take<std::uint8_t>(filters * type);
  workspace.images = carver.take<std::uint8_t>(folds ? fold.image_elements(g) * type : 0);
  workspace.bytes = carver.used();
  return workspace;
}

bool suits_copy_engine(const Task& task, Engine engine) {
  const Geometry& g = task.geometry;
  const int multiple = int(16 / bytes_of(task.type()));
  if (g.groups != 1 || gemm::device_facts().major != 9 || task.math == Math::fp32 || g.k % multiple != 0)
    return false;
  if (engine == Engine::im2col && g.c % multiple != 0) return false;
  if (engine == Engine::folded && !can_fold(task)) return false;
  for (int axis = 0; axis < 2; ++axis)
    if (strided(task) && g.dilation[axis] != 1 && g.stride[axis] != 1) return false;
  const std::vector<View> views = views_of(task, engine);
  return std::all_of(views.begin(), views.end(), [](const View& view) {
    const bool reaches =
        (view.taps[0] - 1) * view.reach[0] <= 255 && (view.taps[1] - 1) * view.reach[1] <= 255;
    return empty(view) || view.rows() == 0 || (view.map.encodable() && reaches);
  });
}

double expected_time(const Task& task, const std::vector<View>& views, int tile, int splits) {
  double time = 0;
  for (const View& view : views)
    if (!empty(view) && view.rows() > 0)
      time += (by_mma_sync(task) ? gemm::copied_expected_time : gemm::sm90_expected_time)(
          padded_product(task, view, tile), tile, splits, task.bytes() / double(views.size()),
          splits > 1 || turned(task, tile));
  return time;
}

template <Engine engine>
std::vector<Plan> window_candidates(const Task& task) {
  const std::vector<View> views = views_of(task, engine);
  std::vector<std::pair<double, Plan>> scored;
  for (int tile = 0; tile < tile_count(task); ++tile) {
    if (!has_kernel(tile_at(task, tile), task.math)) continue;
    // The last columns of narrow tiles are copied to rows of a plain matrix.
    if (gemm::is_narrow(tile_at(task, tile)) && strided(task)) continue;
    const gemm::Schedule whole =
        gemm::sm90_schedule(padded_product(task, views.front(), tile), tile_at(task, tile), 1);
    const int workers = gemm::device_facts().multiprocessors;
    std::vector<std::pair<double, Plan>> own;
    for (int splits = 1; splits <= std::min(std::max(whole.k_blocks, 1), 4 * workers); ++splits) {
      const bool many = whole.pieces() * splits > 8 * workers || whole.k_blocks / splits < 4 || strided(task);
      if (splits > 1 && many) break;
      own.push_back({expected_time(task, views, tile, splits),
                     {engine, product_plan(task, tile, splits),
                      carve(task, engine, tile, splits, nullptr).bytes, sums(task, splits)}});
    }
    std::stable_sort(own.begin(), own.end(), [](auto& a, auto& b) { return a.first < b.first; });
    own.resize(std::min<std::size_t>(own.size(), 3));
    scored.insert(scored.end(), own.begin(), own.end());
  }
  std::stable_sort(scored.begin(), scored.end(), [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<Plan> plans;
  for (auto& one : scored) plans.push_back(one.second);
  return plans;
}

WindowLoad window_load(const View& view, int depth) {
  WindowLoad load{};
  load.across = cuda::Divider(view.map.across);
  load.positions = cuda::Divider(std::int64_t{view.map.down} * view.map.across);
  load.blocks = cuda::Divider(ceil_div(view.map.c, depth));
  load.taps = cuda::Divider(view.taps[1]);
  for (int axis = 0; axis < 2; ++axis) {
    load.first[axis] = view.map.first[axis];
    load.step[axis] = view.map.step[axis];
    load.reach[axis] = view.reach[axis];
  }
  load.images = int(view.map.n);
  load.columns = view.blocks(depth);
  const std::int64_t last = view.map.c - (ceil_div(view.map.c, depth) - 1) * depth;
  load.last_steps = int(ceil_div(last, depth / 4));
  return load;
}

CUtensorMap images_map(const View& view, const void* images, int pixels, int depth) {
  Im2colMap map = view.map;
  map.data = images;
  if (map.pitch_w == 0) map.pitch_w = map.c;
  if (map.pitch_h == 0) map.pitch_h = map.pitch_w * map.w;
  map.pitch_n = map.pitch_h * map.h;
  map.pixels = pixels;
  map.channels = depth;
  return map.encode();
}

// Filters [outer][taps][inner].
CUtensorMap filters_map(DType type, const void* filters, std::int64_t outer, std::int64_t taps,
                        std::int64_t inner, unsigned box_inner, unsigned box_outer) {
  return tiled_map(type, filters, {inner, taps, outer}, {inner, taps * inner}, {box_inner, 1, box_outer});
}

// One kernel launch, of one view.
Sm90ConvCall describe(const Task& task, const Plan& plan, const View& view, const Buffers& b,
                      const Workspace& workspace) {
  const gemm::Sm90Tile& tile = tile_at(task, tile_of(plan));
  const Geometry& g = task.geometry;
  const int depth = depth_of(task), splits = plan.product.splits;
  const bool weights = task.direction == Direction::backward_weights, folds = plan.engine == Engine::folded;
  const gemm::Problem product = padded_product(task, view, tile_of(plan));
  const Result result = result_of(task, view);
  Sm90ConvCall call{};
  call.tile = tile_of(plan);
  call.schedule = gemm::sm90_schedule(product, tile, splits);
  call.blocks = std::min(call.schedule.pieces(), gemm::device_facts().multiprocessors);
  call.window = window_load(view, depth);
  call.filter_taps = view.filter_taps;
  call.images = images_map(view, folds ? workspace.images : b.images, weights ? depth : tile.rows, depth);
  call.m = int(product.m);
  call.n = int(product.n);
  const DType type = task.type();
  if (weights) {
    call.other = tiled_map(type, b.dy, {g.k, view.rows()}, {g.k}, {unsigned(depth), unsigned(depth)});
    float* const out = splits > 1 ? workspace.partial
                       : folds    ? workspace.gradient
                                  : static_cast<float*>(b.out);
    const std::int64_t taps = view.taps[0] * view.taps[1], c = view.map.c;
    if (by_mma_sync(task)) {
      call.gradient = out, call.taps = int(taps), call.channels = int(c);
      return call;
    }
    call.placement.blocks = call.window.blocks;
    if (turned(task, call.tile)) {
      call.c = tiled_map(DType::f32, workspace.partial, {g.k, c, taps, splits},
                         {g.k, c * g.k, taps * c * g.k}, {32, 64, 1, 1});
      call.placement.kind = Placement::Kind::turned;
      return call;
    }
    call.c =
        tiled_map(DType::f32, out, {c, taps, g.k, splits}, {c, taps * c, g.k * taps * c}, {32, 1, 64, 1});
    call.placement.kind = Placement::Kind::filters;
    return call;
  }
  if (folds)
    call.other = filters_map(type, workspace.filters, g.k, view.taps[0], view.map.c, depth, tile.columns);
  else if (task.direction == Direction::forward)
    call.other = filters_map(type, b.weights, g.k, g.taps(), g.c, depth, tile.columns);
  else if (transposes(task, call.tile))
    call.other = filters_map(type, workspace.filters, g.c, g.taps(), g.k, depth, tile.columns);
  else
    call.other = filters_map(type, b.weights, g.k, g.taps(), g.c, 64, 64);
  if (splits > 1) {
    call.c = tiled_map(DType::f32, workspace.partial, {result.n, result.m, splits},
                       {result.n, result.n * result.m}, {32, 64, 1});
    return call;
  }
  call.bf16 = type == DType::bf16;
  call.bias = b.bias;
  call.relu = task.relu;
  if (sums(task, splits)) {
    call.sum_slots = workspace.slots;
    call.placement.control = b.control;
    call.placement.sample_rows = g.p * g.q;
  }
  const auto box = unsigned(128 / bytes_of(type));
  if (!strided(task)) {
    call.c = tiled_map(type, b.out, {result.n, result.m, 1}, {result.n, result.n * result.m}, {box, 64, 1});
    call.narrow = static_cast<std::uint8_t*>(b.out);
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
  call.c = out.encode();
  call.placement.kind = Placement::Kind::positions;
  call.placement.across = call.window.across;
  call.placement.positions = call.window.positions;
  return call;
}

using Sm90Start = void (*)(const Sm90ConvCall&, cudaStream_t);
Sm90Start start_of(const Task& task, int tile, bool sums) {
  if (by_mma_sync(task)) return sm90_conv_backward_weights_tf32;
  if (task.math == Math::tf32) return sm90_conv_forward_tf32;
  if (task.direction == Direction::forward || transposes(task, tile))
    return sums ? sm90_conv_forward_sums : sm90_conv_forward;
  return task.direction == Direction::backward_data ? sm90_conv_backward_data : sm90_conv_backward_weights;
}

Launch bind_windows(const Task& task, const Plan& plan, const Buffers& b) {
  const Geometry& g = task.geometry;
  const Workspace workspace = carve(task, plan.engine, tile_of(plan), plan.product.splits, b.workspace);
  const bool weights = task.direction == Direction::backward_weights, folds = plan.engine == Engine::folded;
  const bool turns = transposes(task, tile_of(plan));
  const Fold fold = folds ? fold_of(task, depth_of(task)) : Fold{};
  const std::vector<View> views = views_of(task, plan.engine);
  auto calls = std::make_shared<std::vector<Sm90ConvCall>>();
  bool gaps = false;
  for (const View& view : views) {
    if (view.rows() == 0) continue;
    if (empty(view))
      gaps = true;
    else
      calls->push_back(describe(task, plan, view, b, workspace));
  }
  const Result result = result_of(task, views.front());
  gemm::Epilogue epilogue;  // of the pieces' sum
  epilogue.c = weights && folds ? workspace.gradient : b.out;
  epilogue.ldc = result.n;
  epilogue.bias = b.bias;
  epilogue.relu = task.relu;
  epilogue.bf16 = !weights && task.math == Math::bf16;
  const int slots = plan.sums ? 2 * calls->front().blocks : 0;  // two consumers a block
  const std::size_t slot_bytes = gemm::slot_elements(g.k, slots) * sizeof(float);
  const std::size_t dx_bytes = gaps ? std::size_t(g.x_pixels()) * g.c * bytes_of(task.type()) : 0;
  return [=, splits = plan.product.splits, turns_gradient = turned(task, tile_of(plan)),
          start = start_of(task, tile_of(plan), plan.sums),
          calls = std::shared_ptr<const std::vector<Sm90ConvCall>>(calls)](Stream on) {
    const cudaStream_t stream = gemm::as_stream(on);
    if (dx_bytes > 0) CONVOY_CUDA(cudaMemsetAsync(b.out, 0, dx_bytes, stream));
    if (folds) fold_images(task, fold, b.images, workspace.images, on);
    if (folds && !weights) fold_filters(task, fold, b.weights, workspace.filters, on);
    if (turns) transpose_filters(b.weights, workspace.filters, g.k, g.taps(), g.c, bytes_of(task.type()), on);
    if (slots > 0) CONVOY_CUDA(cudaMemsetAsync(workspace.slots, 0, slot_bytes, stream));
    for (const Sm90ConvCall& call : *calls) start(call, stream);
    if (slots > 0) gemm::sum_slots(workspace.slots, slots, g.k, b.sums, stream);
    if (turns_gradient)
      add_transposed(workspace.partial, splits, result.n, g.k, static_cast<float*>(epilogue.c), on);
    else if (splits > 1)
      gemm::sum_partials(epilogue, workspace.partial, splits, result.m, result.n, result.n, stream);
    if (folds && weights) unfold_gradient(task, fold, workspace.gradient, static_cast<float*>(b.out), on);
  };
}

template <Engine engine>
const EngineEntry& window_engine() {
  static const EngineEntry entry{[](const Task& task) { return suits_copy_engine(task, engine); },
                                 window_candidates<engine>, bind_windows};
  return entry;
}

}  // namespace

const EngineEntry& im2col_engine() { return window_engine<Engine::im2col>(); }
const EngineEntry& folded_engine() { return window_engine<Engine::folded>(); }

}  // namespace convoy::kernels::conv
