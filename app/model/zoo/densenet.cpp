// DenseNet-121, 169 and 201 (Huang et al. 2017) with the names and initial weights of torchvision.
#include <fmt/format.h>

#include <array>

#include "app/model/zoo/builder.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {
namespace {

constexpr int kGrowth = 32, kBottleneck = 4 * kGrowth;

// Adds a batch norm, a ReLU and a convolution.
void add_norm_conv(Builder& net, const std::string& prefix, const std::string& number, const Conv2d& conv) {
  Conv2d drawn = conv;
  const double fan_in = static_cast<double>(net.shape()[1]) * conv.kernel[0] * conv.kernel[1];
  drawn.weight_initializer = Initializer::he_normal(fan_in);
  net.add(prefix + "norm" + number, BatchNorm{})
      .add(prefix + "relu" + number, Relu{})
      .add(prefix + "conv" + number, drawn);
}

}  // namespace

Network densenet(const std::string& name, const Shape& input, int classes) {
  std::array<int, 4> blocks{6, 12, 24, 16};
  if (name == "densenet169") blocks = {6, 12, 32, 32};
  if (name == "densenet201") blocks = {6, 12, 48, 32};
  Builder net(name, input);
  Conv2d stem = Conv2d::square(2 * kGrowth, 7, 2, 3);
  stem.weight_initializer = Initializer::he_normal(static_cast<double>(input[1]) * 49);
  net.add("features.conv0", stem)
      .add("features.norm0", BatchNorm{})
      .add("features.relu0", Relu{})
      .add("features.pool0", Pool::max(3, 2, 1));
  for (int stage = 1; stage <= 4; ++stage) {
    const int layers = blocks[static_cast<std::size_t>(stage - 1)];
    for (int layer = 1; layer <= layers; ++layer) {
      const std::string prefix = fmt::format("features.denseblock{}.denselayer{}.", stage, layer);
      const LayerId before = net.last();
      add_norm_conv(net, prefix, "1", Conv2d::square(kBottleneck, 1));
      add_norm_conv(net, prefix, "2", Conv2d::square(kGrowth, 3, 1, 1));
      net.add(prefix + "concat", Concat{}, {before, net.last()});
    }
    if (stage == 4) break;
    const std::string prefix = fmt::format("features.transition{}.", stage);
    add_norm_conv(net, prefix, "", Conv2d::square(net.shape()[1] / 2, 1));
    net.add(prefix + "pool", Pool::average(2, 2));
  }
  return net.add("features.norm5", BatchNorm{})
      .add("relu", Relu{})
      .add("avgpool", Pool::global())
      .add("classifier", Linear{.outputs = classes, .bias_initializer = Initializer::constant(0)})
      .take();
}

}  // namespace convoy::app::zoo
