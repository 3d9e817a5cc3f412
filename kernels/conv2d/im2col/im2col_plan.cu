#include <algorithm>
#include <utility>

#include "kernels/conv2d/cuda/space_to_depth.h"
#include "kernels/conv2d/im2col/im2col_plan.cuh"
#include "kernels/gemm/wgmma/sm90_mn_major.h"

namespace convoy::kernels::conv {

using gemm::kMnMajorTiles;
using gemm::kSm90Tiles;
using gemm::Math;

bool is_mn_major(const Task& task) {
  return task.math == Math::tf32 && task.direction == Direction::backward_weights;
}
const gemm::Sm90Tile& tile_at(const Task& task, int tile) {
  return is_mn_major(task) ? kMnMajorTiles[tile] : kSm90Tiles[tile];
}
int tile_of(const Plan& plan) {
  const int tile = plan.product.tile;
  return tile < gemm::kFirstMnMajorTile ? tile : tile - gemm::kFirstMnMajorTile;
}

bool empty(const View& view) { return view.taps[0] == 0 || view.taps[1] == 0; }
bool strided(const Task& task) {
  return task.direction == Direction::backward_data &&
         (task.geometry.stride[0] > 1 || task.geometry.stride[1] > 1);
}

bool suits(const Task& task, Engine engine, const gemm::Sm90Tile& tile) {
  const Geometry& g = task.geometry;
  if (tile.channels32 != gemm::Channels32::none) {
    const int channels = task.direction == Direction::backward_data ? g.k : g.c,
              last = (channels - 1) % 64 + 1;
    if (engine != Engine::im2col || g.groups > 1 || last > 32) return false;
  }
  if (tile.taps == 1) return true;
  const bool side_by_side = g.s == tile.taps && g.padding[1] == gemm::gap_of(tile) && g.dilation[1] == 1 &&
                            g.stride[0] == 1 && g.stride[1] == 1 && g.groups == 1;
  const bool one_block = g.c <= box_channels(task, tile), in_columns = gemm::depth_taps(tile) == 1;
  const std::int64_t positions = std::int64_t{g.n} * std::max(g.h, g.p) * (g.q + gemm::gap_of(tile));
  return engine == Engine::im2col && side_by_side && (one_block || !in_columns) &&
         positions < (std::int64_t{1} << 31) - 2048;
}

View seen_by(const gemm::Sm90Tile& tile, View view) {
  view.map.across += gemm::gap_of(tile);
  view.taps[1] /= gemm::depth_taps(tile);
  return view;
}

int box_channels(const Task& task, const gemm::Sm90Tile& tile) {
  return tile.channels32 == gemm::Channels32::none ? depth_of(task) : 32;
}

bool is_matrix(const Task& task, const View& view) {
  const Im2colMap& map = view.map;
  return task.direction != Direction::backward_weights && view.taps[0] * view.taps[1] == 1 &&
         map.pitch_w == 0 && map.pitch_h == 0 && map.first[0] == 0 && map.first[1] == 0 && map.step[0] == 1 &&
         map.step[1] == 1 && map.down == map.h && map.across == map.w;
}

bool gradient_is_transposed(const Task& task, int tile) {
  return task.direction == Direction::backward_weights &&
         (task.input_affine || gemm::is_narrow(tile_at(task, tile)));
}

bool transposes(const Task& task, int tile) {
  return task.direction == Direction::backward_data &&
         (task.math == Math::tf32 || gemm::is_narrow(tile_at(task, tile)));
}

GroupPacking packing_of(const Task& task, int tile) {
  const Geometry& g = task.geometry;
  const gemm::Sm90Tile& of = tile_at(task, tile);
  const bool rows = task.direction == Direction::backward_weights && !gradient_is_transposed(task, tile);
  const int channels = task.direction == Direction::backward_data ? g.c : g.k;
  const int read = task.direction == Direction::backward_data ? g.k : g.c;
  return pack_groups(g, channels / g.groups, rows ? of.rows : of.columns, read / g.groups,
                     int(16 / bytes_of(task.type())));
}

PackedFilters filters_of(const Task& task, int tile) {
  const GroupPacking packing = packing_of(task, tile);
  const auto whole = [](int elements, int multiple) {
    return int(gemm::ceil_div(elements, multiple)) * multiple;
  };
  const int pack = int(16 / bytes_of(task.type()));
  if (transposes(task, tile)) return {packing, packing.c, whole(packing.k, pack), true, task.joined};
  // If backward_data reads the filters without transposing them, k runs over the filters. Then the
  // filters of a pack are padded to whole blocks, so that no block of k belongs to two packs.
  const bool in_blocks = task.direction == Direction::backward_data && task.geometry.groups > 1;
  return {packing, whole(packing.k, in_blocks ? depth_of(task) : 1), whole(packing.c, pack), false,
          task.joined};
}

bool rearranges_filters(const Task& task, int tile) {
  return task.geometry.groups > 1 && !filters_of(task, tile).is_plain(task.geometry);
}

int window_channels(const Task& task, const View& view, int tile) {
  if (task.geometry.groups == 1) return int(view.map.c);
  const GroupPacking packing = packing_of(task, tile);
  return task.direction == Direction::backward_data ? packing.k : packing.c;
}

int gradient_channels(const Task& task, const View& view, int tile) {
  return task.geometry.groups == 1 ? int(view.map.c) : filters_of(task, tile).inner;
}

gemm::Problem padded_product(const Task& task, const View& view, int tile) {
  const int box = box_channels(task, tile_at(task, tile));
  const std::int64_t columns = std::int64_t{view.blocks(window_channels(task, view, tile), box)} * box;
  gemm::Problem product;
  product.math = task.math;
  const Geometry& g = task.geometry;
  if (task.direction == Direction::backward_weights) {
    product.m = g.k, product.n = columns, product.k = seen_by(tile_at(task, tile), view).rows();
    if (gradient_is_transposed(task, tile)) std::swap(product.m, product.n);
  } else {
    product.output = task.type();
    product.m = seen_by(tile_at(task, tile), view).rows();
    product.n = task.direction == Direction::forward ? g.k : g.c;
    product.k = columns;
  }
  return product.checked();
}

Result result_of(const Task& task, const View& view, int tile) {
  const Geometry& g = task.geometry;
  if (task.direction == Direction::backward_weights)
    return {g.k, std::int64_t{view.taps[0]} * view.taps[1] * gradient_channels(task, view, tile)};
  return {view.rows(), task.direction == Direction::forward ? g.k : g.c};
}

bool sums(const Task& task, int splits) {
  return task.statistics && splits == 1 && 2 * gemm::device_facts().multiprocessors <= gemm::kSumSlots;
}

bool has_double_slots(const Task& task) { return task.statistics && task.type() == DType::f32; }

bool norms(const Task& task, int splits) {
  return task.input_norm && splits == 1 && !strided(task) && !task.joined &&
         2 * gemm::device_facts().multiprocessors <= gemm::kSumSlots;
}

bool repeats_bias(const Task& task) {
  return task.joined && task.bias && task.direction == Direction::forward;
}

bool masks(const Task& task, int splits) { return task.input_relu && splits == 1 && !strided(task); }

Im2colWorkspace carve(const Task& task, Engine engine, int tile, int splits, void* base) {
  gemm::Carver carver(base);
  const Geometry& g = task.geometry;
  const View view = views_of(task, engine).front();
  const Result result = result_of(task, view, tile);
  const std::size_t type = bytes_of(task.type());
  const bool folds = engine == Engine::folded, weights = task.direction == Direction::backward_weights;
  const SpaceToDepth fold = folds ? space_to_depth_of(task, depth_of(task)) : SpaceToDepth{};
  Im2colWorkspace workspace{};
  const bool has_partials = splits > 1 || gradient_is_transposed(task, tile);
  workspace.partial = carver.take<float>(has_partials ? std::size_t(splits) * result.m * result.n : 0);
  const bool rearranged = rearranges_filters(task, tile);
  workspace.gradient = carver.take<float>(!weights     ? 0
                                          : folds      ? fold.filter_elements(g)
                                          : rearranged ? std::size_t(result.m * result.n)
                                                       : 0);
  const int columns = sums(task, splits) ? g.k : norms(task, splits) ? g.c : 0;
  workspace.slots = carver.take<std::uint8_t>(gemm::slot_elements(columns, gemm::kSumSlots) *
                                              (has_double_slots(task) ? sizeof(double) : sizeof(float)));
  const std::size_t filters = weights ? 0
                              : folds ? fold.filter_elements(g)
                              : rearranged || transposes(task, tile)
                                  ? std::size_t(filters_of(task, tile).elements(g))
                                  : 0;
  workspace.filters = carver.take<std::uint8_t>(filters * type);
  workspace.bias = carver.take<float>(repeats_bias(task) ? std::size_t(g.k) : 0);
  workspace.images = carver.take<std::uint8_t>(folds ? fold.image_elements(g) * type : 0);
  workspace.bytes = carver.used();
  return workspace;
}

// Returns whether the windows are the pixels themselves.
static bool is_pointwise(const Geometry& g) {
  return g.taps() == 1 && g.stride[0] == 1 && g.stride[1] == 1 && g.padding[0] == 0 && g.padding[1] == 0 &&
         g.groups == 1;
}

bool suits_tma(const Task& task, Engine engine) {
  const Geometry& g = task.geometry;
  const int multiple = int(16 / bytes_of(task.type()));
  if (gemm::device_facts().major != 9 || task.math == Math::fp32 || g.k % multiple != 0) return false;
  if (engine == Engine::im2col && g.c % multiple != 0) return false;
  if (task.input_affine && (task.math != Math::bf16 || !is_pointwise(g))) return false;
  if (engine == Engine::folded && !suits_space_to_depth(task)) return false;
  for (int axis = 0; axis < 2; ++axis)
    if (strided(task) && g.dilation[axis] != 1 && g.stride[axis] != 1) return false;
  const std::vector<View> views = views_of(task, engine);
  return std::all_of(views.begin(), views.end(), [](const View& view) {
    const bool reaches =
        (view.taps[0] - 1) * view.reach[0] <= 255 && (view.taps[1] - 1) * view.reach[1] <= 255;
    return empty(view) || view.rows() == 0 || (view.map.encodable() && reaches);
  });
}

namespace {

int tile_count(const Task& task) {
  return int(is_mn_major(task) ? std::size(kMnMajorTiles) : std::size(kSm90Tiles));
}
gemm::Plan product_plan(const Task& task, int tile, int splits) {
  return {gemm::Rung::wgmma, tile + (is_mn_major(task) ? gemm::kFirstMnMajorTile : 0), splits, 0};
}

double expected_time(const Task& task, const std::vector<View>& views, int tile, int splits) {
  double time = 0;
  for (const View& view : views) {
    if (empty(view) || view.rows() == 0) continue;
    const gemm::Problem product = padded_product(task, view, tile);
    const double bytes = task.bytes() / double(views.size());
    const bool has_partials = splits > 1 || gradient_is_transposed(task, tile);
    time += is_mn_major(task) ? gemm::mn_major_expected_time(product, tile, splits, bytes, has_partials)
                              : gemm::sm90_expected_time(product, tile, splits, bytes, has_partials,
                                                         !is_matrix(task, view));
  }
  // Tiles of 64 filters whose taps share pixels (Sm90Tile::taps) already keep shared memory busy,
  // so bias, ReLU, mask or column sums add 13 % to their time.
  const gemm::Sm90Tile& of = tile_at(task, tile);
  const bool leaves_little = gemm::depth_taps(of) > 1 && of.columns == 64;
  return leaves_little && (task.statistics || task.input_relu || task.bias || task.relu) ? 1.13 * time : time;
}

// Returns the expected microseconds of a separate pass that does the extra work.
double pass_time(const Task& task, const Result& result) {
  const int tensors = task.statistics ? 1 : task.input_relu ? 3 : 4;
  return 4 + tensors * double(result.m) * double(result.n) * double(bytes_of(task.type())) / gemm::kCopyBytes;
}

// Returns whether all tiles without split sums add up the products of an element in the same order:
// tap by tap and, in each tap, channel by channel.
bool adds_in_one_order(const Task& task, Engine engine) {
  const Geometry& g = task.geometry;
  return engine == Engine::im2col && task.direction != Direction::backward_weights && g.groups == 1 &&
         (task.direction == Direction::forward ? g.c : g.k) <= depth_of(task) && !task.statistics &&
         !task.input_norm;
}

}  // namespace

Plan plan_for_members(const Task& task, const Plan& plan, int members) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // pixels
  if (members == 1 || plan.product.splits > 1 || !adds_in_one_order(task, plan.engine) ||
      members * std::max(task.geometry.x_pixels(), task.geometry.y_pixels()) > kMost)
    return plan;
  Task all = task;
  all.geometry.n *= members;
  const std::vector<View> views = views_of(all, plan.engine);
  const auto time_of = [&](const Plan& one) { return expected_time(all, views, tile_of(one), 1); };
  // The given plan may be known to be the fastest from measurements. So another plan replaces it
  // only if it is expected to be clearly faster.
  constexpr double kClearly = 0.95;
  for (const Plan& other : window_candidates(all, plan.engine))
    if (other.product.splits == 1 && other.workspace_bytes <= plan.workspace_bytes)
      return time_of(other) < kClearly * time_of(plan) ? other : plan;
  return plan;
}

std::vector<Plan> window_candidates(const Task& task, Engine engine) {
  const std::vector<View> views = views_of(task, engine);
  const bool weights = task.direction == Direction::backward_weights;
  std::vector<std::pair<double, Plan>> scored;
  for (int tile = 0; tile < tile_count(task); ++tile) {
    // Skip tiles for which no kernel is compiled. For operands whose k is not contiguous
    // (is_mn_major()), every tile has a kernel.
    if (task.input_affine ? !has_affine_kernel(kSm90Tiles[tile], weights)
                          : !is_mn_major(task) && !has_kernel(kSm90Tiles[tile], task.math, weights))
      continue;
    if (!suits(task, engine, tile_at(task, tile))) continue;
    // Tiles that end in half a TMA box are stored by threads, whose code supports neither gaps
    // between rows nor a mask. So skip these tiles if there are gaps or a mask.
    if (gemm::ends_in_half_box(tile_at(task, tile), task.math) && (strided(task) || task.input_relu))
      continue;
    if (filters_of(task, tile).elements(task.geometry) >= std::int64_t{1} << 31) continue;
    const gemm::TileScheduler whole =
        gemm::sm90_schedule(padded_product(task, views.front(), tile), tile_at(task, tile), 1);
    const int workers = gemm::device_facts().multiprocessors;
    std::vector<std::pair<double, Plan>> own;
    for (int splits = 1; splits <= std::min(std::max(whole.k_blocks(), 1), 4 * workers); ++splits) {
      const bool many = whole.work_items() * splits > 8 * workers || whole.k_blocks() / splits < 4 ||
                        strided(task) || gemm::depth_taps(tile_at(task, tile)) > 1;
      if (splits > 1 && many) break;
      if (norms(task, splits) && !has_norm_kernel(kSm90Tiles[tile], task.math)) continue;
      const bool fuses = sums(task, splits) || norms(task, splits) || (task.input_relu && !strided(task));
      const double pass =
          task.has_extra() && !fuses ? pass_time(task, result_of(task, views.front(), tile)) : 0;
      own.push_back({expected_time(task, views, tile, splits) + pass,
                     {engine, product_plan(task, tile, splits),
                      carve(task, engine, tile, splits, nullptr).bytes, fuses}});
    }
    std::stable_sort(own.begin(), own.end(), [](auto& a, auto& b) { return a.first < b.first; });
    // Keep the three best plans. For extra work, also keep the best plan without splits, which
    // saves a pass.
    const auto rest = own.begin() + std::min<std::ptrdiff_t>(std::ssize(own), 3);
    const auto saving =
        std::find_if(rest, own.end(), [](auto& one) { return one.second.product.splits == 1; });
    if (task.has_extra() && saving != own.end())
      std::iter_swap(rest, saving), own.erase(rest + 1, own.end());
    else
      own.erase(rest, own.end());
    scored.insert(scored.end(), own.begin(), own.end());
  }
  std::stable_sort(scored.begin(), scored.end(), [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<Plan> plans;
  for (auto& one : scored) plans.push_back(one.second);
  return plans;
}

}  // namespace convoy::kernels::conv
