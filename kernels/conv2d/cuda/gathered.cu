// The gathered engine (engines.h): matrix product kernels read im2col(x) from the images as they
// need it. A grouped convolution takes one launch per pack of groups (group_packing.h).
#include <stdexcept>

#include "kernels/conv2d/cuda/filters.h"
#include "kernels/conv2d/cuda/gathered.cuh"
#include "kernels/conv2d/cuda/group_packing.h"
#include "kernels/conv2d/cuda/space_to_depth.h"
#include "kernels/gemm/common/pipeline.cuh"

namespace convoy::kernels::conv {
namespace {

using gemm::Math;
using gemm::Rung;

bool vector_channels(const Task& task) {
  const Geometry& g = task.geometry;
  const int multiple = task.math == Math::bf16 ? 8 : 4;
  if (task.direction == Direction::forward) return g.c % multiple == 0;
  return g.k % multiple == 0 && (task.direction == Direction::backward_data || g.c % multiple == 0);
}

// Returns a matrix product with which a kernel family chooses its plans for the task. The kernels
// do not use its pitches lda and ldb. The pitches only tell the kernel family whether 16-byte
// copies are possible.
gemm::Problem gathered_product(const Task& task) {
  gemm::Problem product = task.product();
  if (task.direction == Direction::backward_data)
    product.transpose_b = true;  // the kernels read a transposed copy of the weights
  const std::int64_t longest = std::max({product.m, product.n, product.k});
  product.lda = product.ldb = gemm::ceil_div(longest, 8) * 8 + (vector_channels(task) ? 0 : 1);
  return product.checked();
}

// The greatest width of a pack of several groups, in filters (in backward_data: channels). It is
// the width of the narrowest tiles.
constexpr int kPackWidth = 64;
constexpr int kMostPacks = 128;  // the most packs; each pack is one launch
// The most packs if a pack is less than half as wide as kPackWidth, for example because the number
// of groups is prime.
constexpr int kMostNarrow = 16;

// Merges groups into packs of equal width, and chooses the layout in which the kernels read the
// filters.
PackedFilters filters_of(const Task& task) {
  const Geometry& g = task.geometry;
  const bool back = task.direction == Direction::backward_data;
  const int c = g.c / g.groups, k = g.k / g.groups;
  int merged = std::clamp(kPackWidth / (back ? c : k), 1, g.groups);
  while (g.groups % merged != 0) --merged;
  const GroupPacking packing{g.groups / merged, merged * c, merged * k};
  return back ? PackedFilters{packing, packing.c, packing.k, true}
              : PackedFilters{packing, packing.k, packing.c, false};
}

// The task that the kernels run: the task of one pack of groups, or the task after space_to_depth
// (if there are too few channels for 16-byte copies), or the task itself.
struct Inner {
  Task task;
  bool folds = false;
  SpaceToDepth fold;
};
Inner inner_of(const Task& task) {
  const Geometry& g = task.geometry;
  if (g.groups > 1) {
    const GroupPacking packing = filters_of(task).packing;
    Inner inner{task};
    inner.task.geometry.c = packing.c, inner.task.geometry.k = packing.k, inner.task.geometry.groups = 1;
    return inner;
  }
  if (vector_channels(task) || !suits_space_to_depth(task)) return {task};
  Inner inner{task, true, space_to_depth_of(task, 1)};
  const SpaceToDepth& fold = inner.fold;
  inner.task.geometry = {g.n,       fold.channels, fold.height, fold.width, g.k,    g.p, g.q,
                         fold.down, fold.across,   {1, 1},      {0, 0},     {1, 1}, 1};
  return vector_channels(inner.task) ? inner : Inner{task};
}

struct Workspace {
  std::uint8_t *product, *filters, *images;
  float* gradient;  // the gradient of the rearranged filters
  std::size_t bytes;
};
Workspace carve(const Task& task, const gemm::Plan& product, void* base) {
  gemm::Carver carver(base);
  const Geometry& g = task.geometry;
  const Inner inner = inner_of(task);
  const bool weights = task.direction == Direction::backward_weights;
  const PackedFilters packed = filters_of(task);
  // Folded and packed filters are copies in the workspace.
  const std::size_t changed = inner.folds          ? inner.fold.filter_elements(g)
                              : packed.is_plain(g) ? 0
                                                   : std::size_t(packed.elements(g));
  const std::size_t filters = weights ? 0 : changed;
  Workspace workspace{};
  workspace.product = carver.take<std::uint8_t>(product.workspace_bytes);
  workspace.filters = carver.take<std::uint8_t>(filters * bytes_of(task.type()));
  workspace.images =
      carver.take<std::uint8_t>(inner.folds ? inner.fold.image_elements(g) * bytes_of(task.type()) : 0);
  workspace.gradient = carver.take<float>(weights ? changed : 0);
  workspace.bytes = carver.used();
  return workspace;
}

bool supports_gathered(const Task& task) {
  if (task.math != Math::fp32 && gemm::device_facts().major < 8) return false;
  const PackedFilters filters = filters_of(task);
  const GroupPacking& packing = filters.packing;
  const int width = task.direction == Direction::backward_data ? packing.c : packing.k;
  return packing.count == 1 || (packing.count <= (width < kPackWidth / 2 ? kMostNarrow : kMostPacks) &&
                                filters.elements(task.geometry) < std::int64_t{1} << 31);
}

std::vector<Plan> gathered_candidates(const Task& task) {
  const Rung rung = task.math == Math::fp32 ? Rung::register_tiles : Rung::mma_sync;
  std::vector<Plan> plans;
  for (const gemm::Plan& product : gemm::candidates(rung, gathered_product(inner_of(task).task)))
    plans.push_back({Engine::gathered, product, carve(task, product, nullptr).bytes, task.input_relu});
  return plans;
}

// Returns the call for pack number `index`, given the call for pack 0.
GatheredCall of_pack(GatheredCall call, const GroupPacking& packing, int index) {
  const bool back = call.task.direction == Direction::backward_data,
             weights = call.task.direction == Direction::backward_weights;
  const std::int64_t c = std::int64_t{index} * packing.c, k = std::int64_t{index} * packing.k,
                     filters = k * call.task.geometry.taps() * packing.c;
  const auto element = std::int64_t(bytes_of(call.task.type()));
  const auto behind = [](const void* data, std::int64_t bytes) -> const void* {
    return data == nullptr ? nullptr : static_cast<const std::uint8_t*>(data) + bytes;
  };
  call.images = behind(call.images, (back ? k : c) * element);
  call.other = behind(call.other, (weights ? k : filters) * element);
  call.epilogue.mask = behind(call.epilogue.mask, c * element);
  call.epilogue.c =
      static_cast<std::uint8_t*>(call.epilogue.c) + (weights ? filters * 4 : (back ? c : k) * element);
  if (call.epilogue.bias != nullptr) call.epilogue.bias += k;
  return call;
}

Launch bind_gathered(const Task& task, const Plan& plan, const Buffers& b) {
  const Geometry& g = task.geometry;
  const Workspace workspace = carve(task, plan.product, b.workspace);
  const Inner inner = inner_of(task);
  const PackedFilters packed = filters_of(task);
  const bool back = task.direction == Direction::backward_data,
             weights = task.direction == Direction::backward_weights;
  const bool packing = g.groups > 1 && !packed.is_plain(g), changed = inner.folds || packing;
  gemm::Problem product = gathered_product(inner.task);
  if (!weights) product.ldc = back ? g.c : g.k;
  gemm::Buffers whole;
  whole.c = changed && weights ? workspace.gradient : b.out;
  whole.bias = b.bias;
  gemm::Epilogue epilogue = gemm::epilogue_of(product, whole);
  if (task.input_relu) epilogue.mask = b.x;
  auto* const partial = reinterpret_cast<float*>(workspace.product);
  const GatheredCall call{.task = inner.task,
                          .product = product,
                          .plan = plan.product,
                          .images = inner.folds ? workspace.images : b.images,
                          .other = weights           ? b.dy
                                   : back || changed ? workspace.filters
                                                     : b.weights,
                          .image_pitch = inner.folds ? inner.fold.channels
                                         : back      ? g.k
                                                     : g.c,
                          .dy_pitch = g.k,
                          .vectors = vector_channels(inner.task),
                          .epilogue = epilogue,
                          .members = b.members};
  const auto start = task.math == Math::fp32 ? start_gathered_registers : start_gathered_mma;
  return [=](Stream stream) {
    const std::size_t element = bytes_of(task.type());
    if (packing && !weights)
      pack_filters(g, packed, b.weights, workspace.filters, nullptr, nullptr, element, stream, b.members);
    if (back && !packing)
      transpose_filters(b.weights, workspace.filters, g.k, g.taps(), g.c, element, stream, b.members);
    if (inner.folds) fold_images(task, inner.fold, b.images, workspace.images, stream, b.members);
    if (inner.folds && !weights)
      fold_filters(task, inner.fold, b.weights, workspace.filters, stream, b.members);
    for (int i = 0; i < packed.packing.count; ++i) {
      GatheredCall one = of_pack(call, packed.packing, i);
      const gemm::Epilogue last = one.epilogue;
      if (plan.product.splits > 1) one.epilogue.partial = partial;
      start(one, stream.get());
      gemm::finish_tiles(one.product, one.plan, last, partial, nullptr, {.members = b.members}, stream.get());
    }
    if (inner.folds && weights)
      unfold_gradient(task, inner.fold, workspace.gradient, static_cast<float*>(b.out), stream, b.members);
    if (packing && weights)
      unpack_gradient(g, packed, workspace.gradient, static_cast<float*>(b.out), stream, b.members);
  };
}

}  // namespace

const EngineEntry& gathered_engine() {
  static const EngineEntry entry{supports_gathered, gathered_candidates, bind_gathered};
  return entry;
}

}  // namespace convoy::kernels::conv
