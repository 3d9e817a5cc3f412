// Names engines and directions. For a task (engines.h), computes the equivalent matrix product and
// the numbers of operations and bytes. Needs no GPU.
#include <fmt/format.h>

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

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
    case Engine::depthwise:
      return "depthwise";
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

double Task::operations() const {
  const Geometry& g = geometry;
  return 2.0 * double(g.y_pixels()) * g.k * g.taps() * (g.c / g.groups);
}

double Task::bytes() const {
  const Geometry& g = geometry;
  const double images = double(g.x_pixels()) * g.c + double(g.y_pixels()) * g.k;
  const double filters = double(g.k) * g.taps() * (g.c / g.groups);
  const bool back = direction == Direction::backward_weights;
  const double read_behind = double(input_relu + 2 * input_norm) * double(g.x_pixels()) * g.c;
  return (images + read_behind) * double(bytes_of(type())) + filters * double(back ? 4 : bytes_of(type()));
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
  // The families of depthwise kernels, in the order of their numbers in kernels/conv2d/cuda/depthwise.cu.
  constexpr const char* kDepthwise[] = {"strips", "tiles", "diagonal", "diagonal in clusters"};
  if (engine == Engine::depthwise) return fmt::format("{} {}", name_of(engine), kDepthwise[product.tile]);
  return fmt::format("{} {}", name_of(engine), product.to_string());
}

}  // namespace convoy::kernels::conv
