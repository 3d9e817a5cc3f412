// Adds rows to kernels_bandwidth for operations of mobile networks and ConvNeXt that ResNet lacks.
#include <fmt/format.h>

#include "kernels/activation/activation.h"
#include "kernels/batch_norm/batch_norm.h"
#include "kernels/broadcast/broadcast.h"
#include "kernels/channels/channels.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/group_norm/group_norm.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/pool/pool.h"
#include "kernels/prelu/prelu.h"
#include "tests/kernels/bandwidth/bandwidth.h"

namespace convoy::kernels::testing {
namespace {

struct Depthwise {
  const char* network;
  std::int64_t samples, channels, pixels;
  int filter, stride;
};

// The shapes of all depthwise convolutions in the three networks, each shape once.
constexpr Depthwise kDepthwise[] = {
    {"mobilenet_v2", 256, 32, 112, 3, 1},    {"mobilenet_v2", 256, 96, 112, 3, 2},
    {"mobilenet_v2", 256, 144, 56, 3, 1},    {"mobilenet_v2", 256, 144, 56, 3, 2},
    {"mobilenet_v2", 256, 192, 28, 3, 1},    {"mobilenet_v2", 256, 192, 28, 3, 2},
    {"mobilenet_v2", 256, 384, 14, 3, 1},    {"mobilenet_v2", 256, 576, 14, 3, 1},
    {"mobilenet_v2", 256, 576, 14, 3, 2},    {"mobilenet_v2", 256, 960, 7, 3, 1},
    {"efficientnet_b0", 128, 144, 56, 5, 2}, {"efficientnet_b0", 128, 240, 28, 5, 1},
    {"efficientnet_b0", 128, 480, 14, 5, 1}, {"efficientnet_b0", 128, 672, 14, 5, 1},
    {"efficientnet_b0", 128, 672, 14, 5, 2}, {"efficientnet_b0", 128, 1152, 7, 5, 1},
    {"convnext_tiny", 128, 96, 56, 7, 1},    {"convnext_tiny", 128, 192, 28, 7, 1},
    {"convnext_tiny", 128, 384, 14, 7, 1},   {"convnext_tiny", 128, 768, 7, 7, 1},
};

void add_depthwise(std::vector<Measured>& rows, DType type) {
  for (const Depthwise& layer : kDepthwise) {
    Conv2dProblem problem{.stride = {layer.stride, layer.stride},
                          .padding = {layer.filter / 2, layer.filter / 2},
                          .groups = static_cast<int>(layer.channels)};
    const Shape shape{layer.samples, layer.channels, layer.pixels, layer.pixels};
    const TensorDesc x = desc(type, shape), w = desc(type, {layer.channels, 1, layer.filter, layer.filter});
    const TensorDesc y = desc(type, conv2d_output_shape(problem, shape, w.shape));
    TensorDesc dw = w;
    dw.dtype = DType::f32;
    const std::string name =
        fmt::format("depthwise {} {}x{} stride {} ", layer.network, layer.filter, layer.filter, layer.stride);
    Conv2dProblem sums = problem;
    sums.statistics = true;
    rows.push_back(
        {name + "forward", [=](auto& r) { return conv2d_forward(Backend::cuda, problem, r); }, {x, w}, {y}});
    rows.push_back({name + "forward with statistics",
                    [=](auto& r) { return conv2d_forward(Backend::cuda, sums, r); },
                    {x, w},
                    {y, desc(DType::f64, {2, layer.channels})}});
    rows.push_back({name + "backward_data",
                    [=](auto& r) { return conv2d_backward_data(Backend::cuda, problem, r); },
                    {y, w},
                    {x}});
    rows.push_back({name + "backward_weights",
                    [=](auto& r) { return conv2d_backward_weights(Backend::cuda, problem, r); },
                    {x, y},
                    {dw}});
  }
}

void add_activations(std::vector<Measured>& rows, DType type) {
  const TensorDesc x = desc(type, {128, 96, 112, 112});
  for (int kind = 0; kind < kActivationKinds; ++kind) {
    const ActivationProblem problem{.kind = static_cast<ActivationKind>(kind)};
    const std::string name = fmt::format("activation {} ", name_of(problem.kind));
    rows.push_back(
        {name + "forward", [=](auto& r) { return activation_forward(Backend::cuda, problem, r); }, {x}, {x}});
    rows.push_back({name + "backward",
                    [=](auto& r) { return activation_backward(Backend::cuda, problem, r); },
                    {x, x},
                    {x}});
  }
  const TensorDesc slope = desc(DType::f32, {96});
  rows.push_back(
      {"prelu_forward", [](auto& r) { return prelu_forward(Backend::cuda, {}, r); }, {x, slope}, {x}});
  rows.push_back({"prelu_backward",
                  [](auto& r) { return prelu_backward(Backend::cuda, {}, r); },
                  {x, slope, x},
                  {x, slope}});
}

void add_norms_with_activations(std::vector<Measured>& rows, DType type) {
  const TensorDesc x = desc(type, {128, 96, 112, 112}), sums = desc(DType::f64, {2, 96}),
                   v = desc(DType::f32, {96});
  for (const ActivationKind kind :
       {ActivationKind::clip, ActivationKind::hard_swish, ActivationKind::silu, ActivationKind::gelu}) {
    const BatchNormProblem norm{.activation = ActivationProblem{.kind = kind}};
    BatchNormProblem split = norm;
    split.second_gradient = split.write_gradient = true;
    const std::string name = name_of(kind);
    rows.push_back({"batch_norm_forward " + name,
                    [=](auto& r) { return batch_norm_forward(Backend::cuda, norm, r); },
                    {x, sums, v, v, v, v},
                    {x}});
    rows.push_back({"batch_norm_backward_reduce " + name,
                    [=](auto& r) { return batch_norm_backward_reduce(Backend::cuda, norm, r); },
                    {x, sums, v, v, x},
                    {sums, v, v}});
    rows.push_back({"batch_norm_backward_reduce second gradient " + name,
                    [=](auto& r) { return batch_norm_backward_reduce(Backend::cuda, split, r); },
                    {x, sums, v, v, x, x},
                    {sums, v, v, x}});
    rows.push_back({"batch_norm_backward " + name,
                    [=](auto& r) { return batch_norm_backward(Backend::cuda, norm, r); },
                    {x, sums, v, v, x, sums},
                    {x}});
  }
}

void add_gates(std::vector<Measured>& rows, DType type) {
  for (const auto& [c, pixels] : {std::pair{32, 112}, {144, 56}, {480, 14}, {1152, 7}}) {
    const TensorDesc x = desc(type, {128, c, pixels, pixels}), gate = desc(type, {128, c, 1, 1});
    rows.push_back({"multiply_forward gate",
                    [](auto& r) { return multiply_forward(Backend::cuda, {}, r); },
                    {x, gate},
                    {x}});
    rows.push_back({"multiply_backward gate",
                    [](auto& r) { return multiply_backward(Backend::cuda, {}, r); },
                    {x, gate, x},
                    {x, gate}});
    const PoolProblem global{.kind = PoolKind::average, .kernel = {pixels, pixels}, .stride = {1, 1}};
    rows.push_back({"squeeze, pool_forward global",
                    [=](auto& r) { return pool_forward(Backend::cuda, global, r); },
                    {x},
                    {gate}});
    rows.push_back({"squeeze, pool_backward global",
                    [=](auto& r) { return pool_backward(Backend::cuda, global, r); },
                    {gate},
                    {x}});
  }
  const TensorDesc x = desc(type, {128, 96, 56, 56}), scale = desc(DType::f32, {96});
  rows.push_back({"multiply_forward layer scale",
                  [](auto& r) { return multiply_forward(Backend::cuda, {}, r); },
                  {x, scale},
                  {x}});
  rows.push_back({"multiply_backward layer scale",
                  [](auto& r) { return multiply_backward(Backend::cuda, {}, r); },
                  {x, scale, x},
                  {x, scale}});
}

void add_norms(std::vector<Measured>& rows, DType type) {
  for (const auto& [c, pixels] : {std::pair{96, 56}, {192, 28}, {384, 14}, {768, 7}}) {
    const TensorDesc x = desc(type, {128, c, pixels, pixels}), v = desc(DType::f32, {c});
    const TensorDesc moments = desc(DType::f32, layer_norm_moments(x.shape));
    rows.push_back({"layer_norm_forward",
                    [](auto& r) { return layer_norm_forward(Backend::cuda, {}, r); },
                    {x, v, v},
                    {x, moments}});
    rows.push_back({"layer_norm_backward",
                    [](auto& r) { return layer_norm_backward(Backend::cuda, {}, r); },
                    {x, v, x, moments},
                    {x, v, v}});
  }
  const TensorDesc x = desc(type, {128, 256, 56, 56}), v = desc(DType::f32, {256}),
                   moments = desc(DType::f32, {2 * 128 * 32});
  rows.push_back({"group_norm_forward",
                  [](auto& r) { return group_norm_forward(Backend::cuda, {}, r); },
                  {x, v, v},
                  {x, moments}});
  rows.push_back({"group_norm_backward",
                  [](auto& r) { return group_norm_backward(Backend::cuda, {}, r); },
                  {x, v, x, moments},
                  {x, v, v}});
  for (const auto& [c, pixels] : {std::pair{116, 28}, {232, 14}}) {
    const TensorDesc whole = desc(type, {256, c, pixels, pixels});
    rows.push_back(
        {"channel_shuffle", [](auto& r) { return channel_shuffle(Backend::cuda, {}, r); }, {whole}, {whole}});
  }
}

}  // namespace

void add_mobile_layers(std::vector<Measured>& rows, DType type) {
  add_depthwise(rows, type);
  add_activations(rows, type);
  add_norms_with_activations(rows, type);
  add_gates(rows, type);
  add_norms(rows, type);
}

}  // namespace convoy::kernels::testing
