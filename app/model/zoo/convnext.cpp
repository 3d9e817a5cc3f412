// ConvNeXt-T (Liu et al. 2022) with the names and initial weights of torchvision. Where torchvision
// applies a linear layer to every pixel, this network has a 1x1 convolution. The rate of stochastic
// depth grows from block to block, up to 0.1.
#include <fmt/format.h>

#include <array>

#include "app/model/zoo/blocks.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {
namespace {

Conv2d drawn(Conv2d conv) {
  conv.bias = true;
  conv.weight_initializer = Initializer::normal(0.02);
  return conv;
}

void add_pixelwise_linear(Builder& net, const std::string& name, std::int64_t outputs) {
  const std::int64_t channels = net.shape()[1];
  net.add(name, drawn(Conv2d::square(outputs, 1))).parameter("weight").file_shape = {outputs, channels};
}

void add_block(Builder& net, const std::string& prefix, float drop) {
  const LayerId input = net.last();
  const std::int64_t channels = net.shape()[1];
  net.add(prefix + ".block.0", drawn(depthwise(channels, 7, 1))).add(prefix + ".block.2", LayerNorm{});
  add_pixelwise_linear(net, prefix + ".block.3", 4 * channels);
  net.add(prefix + ".block.4", Activation::of(kernels::ActivationKind::gelu));
  add_pixelwise_linear(net, prefix + ".block.5", channels);
  ParameterSpec& scale = net.add(prefix + ".scale", Scale{1e-6}).parameter("weight");
  scale.name = prefix + ".layer_scale";
  scale.file_shape = {channels, 1, 1};
  if (drop > 0) net.add(prefix + ".stochastic_depth", Dropout{drop, true});
  net.add(prefix + ".add", Add{}, {net.last(), input});
}

}  // namespace

Network convnext_tiny(const std::string& name, const Shape& input, int classes) {
  constexpr std::array kWidths{96, 192, 384, 768}, kBlocks{3, 3, 9, 3};
  Builder net(name, input);
  net.add("features.0.0", drawn(Conv2d::square(kWidths[0], 4, 4))).add("features.0.1", LayerNorm{});
  int done = 0;
  for (std::size_t stage = 0; stage < kWidths.size(); ++stage) {
    if (stage > 0)
      net.add(fmt::format("features.{}.0", 2 * stage), LayerNorm{})
          .add(fmt::format("features.{}.1", 2 * stage), drawn(Conv2d::square(kWidths[stage], 2, 2)));
    for (int block = 0; block < kBlocks[stage]; ++block)
      add_block(net, fmt::format("features.{}.{}", 2 * stage + 1, block),
                0.1f * static_cast<float>(done++) / 17);
  }
  return net.add("avgpool", Pool::global())
      .add("classifier.0", LayerNorm{})
      .add("classifier.2", Linear{classes, true, Initializer::normal(0.02), Initializer::constant(0)})
      .take();
}

}  // namespace convoy::app::zoo
