// MobileNetV3 (Howard et al. 2019), large and small, with the names and initial weights of
// torchvision.
#include <fmt/format.h>

#include <vector>

#include "app/model/zoo/blocks.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {
namespace {

using kernels::ActivationKind;

struct Block {
  int kernel, expanded, outputs;
  bool squeeze_excitation, hard_swish;
  int stride;
};

const std::vector<Block> kLarge{
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
    {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1}};
const std::vector<Block> kSmall{
    {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
    {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
    {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
    {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1}};

const BatchNorm kNorm{.epsilon = 1e-3, .momentum = 0.01};

LayerOp activation(bool hard_swish) {
  if (hard_swish) return Activation::of(ActivationKind::hard_swish);
  return Relu{};
}

void add_block(Builder& net, const std::string& prefix, const Block& block) {
  const LayerId input = net.last();
  const std::int64_t channels = net.shape()[1];
  int index = 0;
  const auto part = [&] { return fmt::format("{}.block.{}", prefix, index++); };
  if (block.expanded != channels)
    add_conv_norm(net, part(), Conv2d::square(block.expanded, 1), kNorm, activation(block.hard_swish));
  add_conv_norm(net, part(), depthwise(block.expanded, block.kernel, block.stride), kNorm,
                activation(block.hard_swish));
  if (block.squeeze_excitation)
    add_squeeze_excitation(net, part(), rounded_channels(block.expanded / 4), Relu{},
                           Activation::hard_sigmoid());
  add_conv_norm(net, part(), Conv2d::square(block.outputs, 1), kNorm, {});
  if (block.stride == 1 && channels == block.outputs) net.add(prefix + ".add", Add{}, {net.last(), input});
}

}  // namespace

Network mobilenet_v3(const std::string& name, const Shape& input, int classes) {
  const bool large = name.ends_with("large");
  Builder net(name, input);
  add_conv_norm(net, "features.0", Conv2d::square(16, 3, 2, 1), kNorm, activation(true));
  int index = 1;
  for (const Block& block : large ? kLarge : kSmall)
    add_block(net, fmt::format("features.{}", index++), block);
  add_conv_norm(net, fmt::format("features.{}", index), Conv2d::square(6 * net.shape()[1], 1), kNorm,
                activation(true));
  const auto linear = [](std::int64_t outputs) {
    return Linear{outputs, true, Initializer::normal(0.01), Initializer::constant(0)};
  };
  return net.add("avgpool", Pool::global())
      .add("classifier.0", linear(large ? 1280 : 1024))
      .add("classifier.1", activation(true))
      .add("classifier.2", Dropout{0.2f})
      .add("classifier.3", linear(classes))
      .take();
}

}  // namespace convoy::app::zoo
