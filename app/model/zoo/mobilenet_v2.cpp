// MobileNetV2 (Sandler et al. 2018) with the names and initial weights of torchvision.
#include <fmt/format.h>

#include "app/model/zoo/blocks.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {
namespace {

void add_block(Builder& net, const std::string& prefix, std::int64_t outputs, int stride, int expansion) {
  const LayerId input = net.last();
  const std::int64_t channels = net.shape()[1], hidden = channels * expansion;
  int index = 0;
  const auto part = [&] { return fmt::format("{}.conv.{}", prefix, index++); };
  if (expansion != 1) add_conv_norm(net, part(), Conv2d::square(hidden, 1), BatchNorm{}, Activation::relu6());
  add_conv_norm(net, part(), depthwise(hidden, 3, stride), BatchNorm{}, Activation::relu6());
  net.add(part(), Conv2d::square(outputs, 1)).add(part(), BatchNorm{});
  if (stride == 1 && channels == outputs) net.add(prefix + ".add", Add{}, {net.last(), input});
}

struct Stage {
  int expansion, outputs, blocks, stride;
};

}  // namespace

Network mobilenet_v2(const std::string& name, const Shape& input, int classes) {
  Builder net(name, input);
  add_conv_norm(net, "features.0", Conv2d::square(32, 3, 2, 1), BatchNorm{}, Activation::relu6());
  int index = 1;
  for (const Stage& stage : {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
                             Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}})
    for (int block = 0; block < stage.blocks; ++block)
      add_block(net, fmt::format("features.{}", index++), stage.outputs, block == 0 ? stage.stride : 1,
                stage.expansion);
  add_conv_norm(net, fmt::format("features.{}", index), Conv2d::square(1280, 1), BatchNorm{},
                Activation::relu6());
  return net.add("avgpool", Pool::global())
      .add("classifier.0", Dropout{0.2f})
      .add("classifier.1", Linear{classes, true, Initializer::normal(0.01), Initializer::constant(0)})
      .take();
}

}  // namespace convoy::app::zoo
