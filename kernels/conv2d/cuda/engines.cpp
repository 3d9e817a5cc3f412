// Calls the engines (engines.h), and does the work that is the same for all of them.
#include "kernels/conv2d/engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "kernels/conv2d/cuda/joined_pixels.h"
#include "kernels/gemm/common/bias_gradient.h"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::conv {
namespace {

const EngineEntry& entry_of(Engine engine) {
  switch (engine) {
    case Engine::direct:
      return direct_engine();
    case Engine::gathered:
      return gathered_engine();
    case Engine::matrix:
      return matrix_engine();
    case Engine::im2col:
      return im2col_engine();
    case Engine::folded:
      return folded_engine();
    case Engine::depthwise:
      return depthwise_engine();
  }
  throw std::logic_error("unknown engine");
}

bool writes_bias_gradient(const Task& task) {
  return task.bias && task.direction == Direction::backward_weights;
}

// Returns the bytes of the engine's workspace. The workspace of the bias gradient lies after it.
std::size_t engine_bytes(const Plan& plan) { return gemm::round_up(plan.workspace_bytes, 256); }

}  // namespace

bool supports(Engine engine, const Task& task) {
  return (!task.input_affine || engine == Engine::im2col) && entry_of(engine).supports(task);
}

std::vector<Plan> candidates(Engine engine, const Task& task) {
  if (!supports(engine, task))
    throw std::invalid_argument(fmt::format("conv2d: {} cannot do {}", name_of(engine), task.to_string()));
  std::vector<Plan> plans = entry_of(engine).candidates(task);
  if (writes_bias_gradient(task))
    for (Plan& plan : plans)
      plan.workspace_bytes = engine_bytes(plan) + gemm::bias_gradient_workspace(
                                                      task.type(), task.geometry.y_pixels(), task.geometry.k);
  return plans;
}

std::vector<Plan> candidates(const Task& task) {
  std::vector<Plan> plans;
  // The im2col engine reads channels in blocks of 64. With 16 channels or fewer, most of a block is
  // zeros. The folded engine fills a block with several taps of the filter, so its plans come
  // first.
  const bool few = task.geometry.c <= 16;
  const Engine first = few ? Engine::folded : Engine::im2col, second = few ? Engine::im2col : Engine::folded;
  std::vector<Engine> order{Engine::depthwise, Engine::matrix, first, second,
                            Engine::gathered,  Engine::direct};
  if (with_joined_pixels(task).joined) std::swap(order[1], *std::ranges::find(order, Engine::im2col));
  for (const Engine engine : order)
    if (supports(engine, task))
      for (Plan& plan : candidates(engine, task)) plans.push_back(std::move(plan));
  // If the best plan of the im2col or folded engine fuses the extra work (Task::has_extra), put all
  // plans that fuse it first. Otherwise a separate pass is expected to be faster.
  const auto fuses = [](const Plan& plan) { return plan.fuses_extra && !is_fallback(plan.engine); };
  const auto able = std::find_if(plans.begin(), plans.end(), [](const Plan& plan) {
    return plan.engine == Engine::im2col || plan.engine == Engine::folded;
  });
  const bool depthwise = !plans.empty() && plans.front().engine == Engine::depthwise;
  if (task.has_extra() && able != plans.end() && able->fuses_extra && !depthwise)
    std::stable_partition(plans.begin(), plans.end(), fuses);
  if (plans.empty()) throw std::invalid_argument(fmt::format("conv2d: no engine does {}", task.to_string()));
  return plans;
}

Launch bind(const Task& task, const Plan& plan, const Buffers& buffers) {
  Plan own = plan;
  const Geometry& g = task.geometry;
  if (!writes_bias_gradient(task)) return entry_of(plan.engine).bind(task, own, buffers);
  const std::size_t sums = gemm::bias_gradient_workspace(task.type(), g.y_pixels(), g.k);
  own.workspace_bytes -= sums;
  auto* const behind = static_cast<std::uint8_t*>(buffers.workspace) + own.workspace_bytes;
  return [=, product = entry_of(plan.engine).bind(task, own, buffers)](Stream stream) {
    product(stream);
    gemm::bias_gradient(task.type(), buffers.dy, g.y_pixels(), g.k, buffers.dbias, behind, stream,
                        buffers.members);
  };
}

}  // namespace convoy::kernels::conv
