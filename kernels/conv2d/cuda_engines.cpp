// Dispatch over the engines, and what of a task they share.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "kernels/conv2d/engines.h"
#include "kernels/gemm/bias_gradient.h"
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
  }
  throw std::logic_error("unknown engine");
}

bool writes_bias_gradient(const Task& task) {
  return task.bias && task.direction == Direction::backward_weights;
}

// The engine's share of the workspace; the bias gradient's lies behind it.
std::size_t engine_bytes(const Plan& plan) { return gemm::round_up(plan.workspace_bytes, 256); }

}  // namespace

const char* name_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return "forward";
    case Direction::backward_data:
      return "backward_data";
    case Direction::backward_weights:
      return "backward_weights";
  }
  return "unknown";
}

const char* name_of(Engine engine) {
  switch (engine) {
    case Engine::direct:
      return "direct";
    case Engine::gathered:
      return "gathered";
    case Engine::matrix:
      return "matrix";
    case Engine::im2col:
      return "im2col";
    case Engine::folded:
      return "folded";
  }
  return "unknown";
}

gemm::Problem Task::product() const {
  const Geometry& g = geometry;
  gemm::Problem product;
  product.math = math;
  product.output = direction == Direction::backward_weights ? DType::f32 : type();
  const std::int64_t window = std::int64_t{g.taps()} * g.c;
  switch (direction) {
    case Direction::forward:
      product.transpose_b = true;
      product.m = g.y_pixels(), product.n = g.k, product.k = window;
      product.bias = bias, product.relu = relu;
      break;
    case Direction::backward_data:
      product.m = g.x_pixels(), product.n = g.c, product.k = std::int64_t{g.taps()} * g.k;
      break;
    case Direction::backward_weights:
      product.transpose_a = true;
      product.m = g.k, product.n = window, product.k = g.y_pixels();
      break;
  }
  return product;
}

double Task::bytes() const {
  const Geometry& g = geometry;
  const double images = double(g.x_pixels()) * g.c + double(g.y_pixels()) * g.k;
  const double filters = double(g.k) * g.taps() * (g.c / g.groups);
  const bool back = direction == Direction::backward_weights;
  return images * double(bytes_of(type())) + filters * double(back ? 4 : bytes_of(type()));
}

std::string Task::to_string() const {
  const Geometry& g = geometry;
  return fmt::format("{} {} {}x{}x{}x{} by {}x{}x{}x{} stride {},{} padding {},{} dilation {},{} groups {}",
                     gemm::name_of(math), name_of(direction), g.n, g.c, g.h, g.w, g.k, g.c / g.groups, g.r,
                     g.s, g.stride[0], g.stride[1], g.padding[0], g.padding[1], g.dilation[0], g.dilation[1],
                     g.groups);
}

std::string Plan::to_string() const {
  if (engine == Engine::direct) return name_of(engine);
  return fmt::format("{} {}", name_of(engine), product.to_string());
}

bool supports(Engine engine, const Task& task) { return entry_of(engine).supports(task); }

std::vector<Plan> candidates(Engine engine, const Task& task) {
  if (!supports(engine, task))
    throw std::invalid_argument(fmt::format("conv2d: {} cannot do {}", name_of(engine), task.to_string()));
  std::vector<Plan> plans = entry_of(engine).candidates(task);
  if (writes_bias_gradient(task))
    for (Plan& plan : plans)
      plan.workspace_bytes =
          engine_bytes(plan) + gemm::bias_gradient_workspace(task.geometry.y_pixels(), task.geometry.k);
  return plans;
}

std::vector<Plan> candidates(const Task& task) {
  std::vector<Plan> plans;
  // Blocks of channels hold 64 elements: with a quarter of that and less, taps had better fill them up.
  const bool few = task.geometry.c <= 16;
  const Engine first = few ? Engine::folded : Engine::im2col, second = few ? Engine::im2col : Engine::folded;
  for (const Engine engine : {Engine::matrix, first, second, Engine::gathered, Engine::direct})
    if (supports(engine, task))
      for (Plan& plan : candidates(engine, task)) plans.push_back(std::move(plan));
  if (plans.empty()) throw std::invalid_argument(fmt::format("conv2d: no engine does {}", task.to_string()));
  return plans;
}

Launch bind(const Task& task, const Plan& plan, const Buffers& buffers) {
  Plan own = plan;
  const Geometry& g = task.geometry;
  if (!writes_bias_gradient(task)) return entry_of(plan.engine).bind(task, own, buffers);
  const std::size_t sums = gemm::bias_gradient_workspace(g.y_pixels(), g.k);
  own.workspace_bytes -= sums;
  auto* const behind = static_cast<std::uint8_t*>(buffers.workspace) + own.workspace_bytes;
  return [=, product = entry_of(plan.engine).bind(task, own, buffers)](Stream stream) {
    product(stream);
    gemm::bias_gradient(task.type(), buffers.dy, g.y_pixels(), g.k, buffers.dbias, behind, stream);
  };
}

}  // namespace convoy::kernels::conv
