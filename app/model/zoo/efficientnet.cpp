// EfficientNet B0 to B4 (Tan & Le 2019) with the names and initial weights of torchvision. The rate
// of stochastic depth grows from block to block, up to 0.2.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "app/model/zoo/blocks.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {
namespace {

struct Scaling {
  double width, depth;
  float dropout;
};
constexpr std::array kScalings{Scaling{1.0, 1.0, 0.2f}, Scaling{1.0, 1.1, 0.2f}, Scaling{1.1, 1.2, 0.3f},
                               Scaling{1.2, 1.4, 0.3f}, Scaling{1.4, 1.8, 0.4f}};

struct Stage {
  int expansion, kernel, stride, outputs, blocks;
};
constexpr std::array kStages{Stage{1, 3, 1, 16, 1}, Stage{6, 3, 2, 24, 2},  Stage{6, 5, 2, 40, 2},
                             Stage{6, 3, 2, 80, 3}, Stage{6, 5, 1, 112, 3}, Stage{6, 5, 2, 192, 4},
                             Stage{6, 3, 1, 320, 1}};

const Activation kSilu = Activation::of(kernels::ActivationKind::silu);

void add_block(Builder& net, const std::string& prefix, const Stage& stage, std::int64_t outputs, int stride,
               float drop) {
  const LayerId input = net.last();
  const std::int64_t channels = net.shape()[1], expanded = channels * stage.expansion;
  int index = 0;
  const auto part = [&] { return fmt::format("{}.block.{}", prefix, index++); };
  if (stage.expansion != 1) add_conv_norm(net, part(), Conv2d::square(expanded, 1), BatchNorm{}, kSilu);
  add_conv_norm(net, part(), depthwise(expanded, stage.kernel, stride), BatchNorm{}, kSilu);
  add_squeeze_excitation(net, part(), std::max<std::int64_t>(1, channels / 4), kSilu,
                         Activation::of(kernels::ActivationKind::sigmoid));
  add_conv_norm(net, part(), Conv2d::square(outputs, 1), BatchNorm{}, {});
  if (stride != 1 || channels != outputs) return;
  if (drop > 0) net.add(prefix + ".stochastic_depth", Dropout{drop, true});
  net.add(prefix + ".add", Add{}, {net.last(), input});
}

}  // namespace

Network efficientnet(const std::string& name, const Shape& input, int classes) {
  const Scaling& scaling = kScalings[static_cast<std::size_t>(name.back() - '0')];
  const auto channels = [&](int of) { return rounded_channels(of * scaling.width); };
  const auto depth = [&](int of) { return static_cast<int>(std::ceil(of * scaling.depth)); };
  int blocks = 0;
  for (const Stage& stage : kStages) blocks += depth(stage.blocks);
  Builder net(name, input);
  add_conv_norm(net, "features.0", Conv2d::square(channels(32), 3, 2, 1), BatchNorm{}, kSilu);
  int done = 0, index = 1;
  for (const Stage& stage : kStages) {
    for (int block = 0; block < depth(stage.blocks); ++block, ++done)
      add_block(net, fmt::format("features.{}.{}", index, block), stage, channels(stage.outputs),
                block == 0 ? stage.stride : 1, 0.2f * static_cast<float>(done) / static_cast<float>(blocks));
    ++index;
  }
  add_conv_norm(net, fmt::format("features.{}", index), Conv2d::square(4 * channels(320), 1), BatchNorm{},
                kSilu);
  return net.add("avgpool", Pool::global())
      .add("classifier.0", Dropout{scaling.dropout})
      .add("classifier.1",
           Linear{classes, true, Initializer::uniform(1 / std::sqrt(classes)), Initializer::constant(0)})
      .take();
}

}  // namespace convoy::app::zoo
