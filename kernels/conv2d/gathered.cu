// The gathered engine: which tile shape and how many pieces of k, as the rungs of kernels/gemm expect them to be
// fastest on the product, and the launch.
#include <stdexcept>

#include "kernels/conv2d/filters.h"
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

struct Workspace {
  std::uint8_t *product, *filters;
  std::size_t bytes;
};
Workspace carve(const Task& task, const gemm::Plan& product, void* base) {
  gemm::Carver carver(base);
  const Geometry& g = task.geometry;
  const bool back = task.direction == Direction::backward_data;
  const std::size_t filters = back ? std::size_t(g.k) * g.taps() * g.c * bytes_of(task.type()) : 0;
  auto* const for_product = carver.take<std::uint8_t>(product.workspace_bytes);
  auto* const for_filters = carver.take<std::uint8_t>(filters);
  return {for_product, for_filters, carver.used()};
}

bool supports_gathered(const Task& task) {
  return task.geometry.groups == 1 && (task.math == Math::fp32 || gemm::device_facts().major >= 8);
}

std::vector<Plan> gathered_candidates(const Task& task) {
  const Rung rung = task.math == Math::fp32 ? Rung::register_tiles : Rung::mma_sync;
  std::vector<Plan> plans;
  for (const gemm::Plan& product : gemm::candidates(rung, gathered_product(task)))
    plans.push_back({Engine::gathered, product, carve(task, product, nullptr).bytes});
  return plans;
}

Launch bind_gathered(const Task& task, const Plan& plan, const Buffers& buffers) {
  const Workspace workspace = carve(task, plan.product, buffers.workspace);
  const gemm::Problem product = gathered_product(task);
  gemm::Buffers whole;
  whole.c = buffers.out;
  whole.bias = buffers.bias;
  const gemm::Epilogue epilogue = gemm::epilogue_of(product, whole);
  auto* const partial = reinterpret_cast<float*>(workspace.product);
  GatheredCall call{task,    product, plan.product, buffers.images, buffers.weights, vector_channels(task),
                    epilogue};
  if (plan.product.splits > 1) call.epilogue.partial = partial;
  if (task.direction == Direction::backward_weights) call.other = buffers.dy;
  if (task.direction == Direction::backward_data) call.other = workspace.filters;
  const auto start = task.math == Math::fp32 ? start_gathered_registers : start_gathered_mma;
  return [=, weights = buffers.weights](Stream stream) {
    const Geometry& g = call.task.geometry;
    if (call.task.direction == Direction::backward_data)
      transpose_filters(weights, workspace.filters, g.k, g.taps(), g.c, bytes_of(call.task.type()), stream);
    start(call, gemm::as_stream(stream));
    gemm::finish_tiles(call.product, call.plan, epilogue, partial, nullptr, {}, gemm::as_stream(stream));
  };
}

}  // namespace

const EngineEntry& gathered_engine() {
  static const EngineEntry entry{supports_gathered, gathered_candidates, bind_gathered};
  return entry;
}

}  // namespace convoy::kernels::conv
