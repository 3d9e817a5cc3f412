// The gathered engine: which tile shape and how many pieces of k, as the rungs of kernels/gemm expect them to be
// fastest on the product, and the launch.
#include <stdexcept>

#include "kernels/conv2d/filters.h"
#include "kernels/conv2d/fold.h"
#include "kernels/conv2d/gathered.cuh"
#include "kernels/gemm/pipeline.cuh"

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

// As the rung sees it: the pitches tell it whether 16-byte copies are possible, no more.
gemm::Problem gathered_product(const Task& task) {
  gemm::Problem product = task.product();
  if (task.direction == Direction::backward_data)
    product.transpose_b = true;  // a transposed copy of the weights
  const std::int64_t longest = std::max({product.m, product.n, product.k});
  product.lda = product.ldb = gemm::ceil_div(longest, 8) * 8 + (vector_channels(task) ? 0 : 1);
  return product.checked();
}

// What the rung runs: the task, or, where few channels keep 16-byte copies out, what it becomes behind fold_images.
struct Inner {
  Task task;
  bool folds = false;
  Fold fold;
};
Inner inner_of(const Task& task) {
  if (vector_channels(task) || !can_fold(task)) return {task};
  const Geometry& g = task.geometry;
  Inner inner{task, true, fold_of(task, 1)};
  const Fold& fold = inner.fold;
  inner.task.geometry = {g.n,       fold.channels, fold.height, fold.width, g.k,    g.p, g.q,
                         fold.down, fold.across,   {1, 1},      {0, 0},     {1, 1}, 1};
  return vector_channels(inner.task) ? inner : Inner{task};
}

struct Workspace {
  std::uint8_t *product, *filters, *images;
  float* gradient;  // of the folded filters
  std::size_t bytes;
};
Workspace carve(const Task& task, const gemm::Plan& product, void* base) {
  gemm::Carver carver(base);
  const Geometry& g = task.geometry;
  const Inner inner = inner_of(task);
  const bool back = task.direction == Direction::backward_data,
             weights = task.direction == Direction::backward_weights;
  const std::size_t folded = inner.folds ? inner.fold.filter_elements(g) : 0;
  const std::size_t filters = back ? std::size_t(g.k) * g.taps() * g.c : weights ? 0 : folded;
  Workspace workspace{};
  workspace.product = carver.take<std::uint8_t>(product.workspace_bytes);
  workspace.filters = carver.take<std::uint8_t>(filters * bytes_of(task.type()));
  workspace.images =
      carver.take<std::uint8_t>(inner.folds ? inner.fold.image_elements(g) * bytes_of(task.type()) : 0);
  workspace.gradient = carver.take<float>(weights ? folded : 0);
  workspace.bytes = carver.used();
  return workspace;
}

bool supports_gathered(const Task& task) {
  return task.geometry.groups == 1 && (task.math == Math::fp32 || gemm::device_facts().major >= 8);
}

std::vector<Plan> gathered_candidates(const Task& task) {
  const Rung rung = task.math == Math::fp32 ? Rung::register_tiles : Rung::mma_sync;
  std::vector<Plan> plans;
  for (const gemm::Plan& product : gemm::candidates(rung, gathered_product(inner_of(task).task)))
    plans.push_back({Engine::gathered, product, carve(task, product, nullptr).bytes, task.input_relu});
  return plans;
}

Launch bind_gathered(const Task& task, const Plan& plan, const Buffers& b) {
  const Workspace workspace = carve(task, plan.product, b.workspace);
  const Inner inner = inner_of(task);
  const bool back = task.direction == Direction::backward_data,
             weights = task.direction == Direction::backward_weights;
  const gemm::Problem product = gathered_product(inner.task);
  gemm::Buffers whole;
  whole.c = inner.folds && weights ? workspace.gradient : b.out;
  whole.bias = b.bias;
  gemm::Epilogue epilogue = gemm::epilogue_of(product, whole);
  if (task.input_relu) epilogue.mask = b.x;
  auto* const partial = reinterpret_cast<float*>(workspace.product);
  const void* const filters = back || inner.folds ? workspace.filters : b.weights;
  GatheredCall call{inner.task,
                    product,
                    plan.product,
                    inner.folds ? workspace.images : b.images,
                    weights ? b.dy : filters,
                    vector_channels(inner.task),
                    epilogue};
  if (plan.product.splits > 1) call.epilogue.partial = partial;
  const auto start = task.math == Math::fp32 ? start_gathered_registers : start_gathered_mma;
  return [=](Stream stream) {
    const Geometry& g = task.geometry;
    if (back)
      transpose_filters(b.weights, workspace.filters, g.k, g.taps(), g.c, bytes_of(task.type()), stream);
    if (inner.folds) fold_images(task, inner.fold, b.images, workspace.images, stream);
    if (inner.folds && !weights) fold_filters(task, inner.fold, b.weights, workspace.filters, stream);
    start(call, gemm::as_stream(stream));
    gemm::finish_tiles(call.product, call.plan, epilogue, partial, nullptr, {}, gemm::as_stream(stream));
    if (inner.folds && weights)
      unfold_gradient(task, inner.fold, workspace.gradient, static_cast<float*>(b.out), stream);
  };
}

}  // namespace

const EngineEntry& gathered_engine() {
  static const EngineEntry entry{supports_gathered, gathered_candidates, bind_gathered};
  return entry;
}

}  // namespace convoy::kernels::conv
