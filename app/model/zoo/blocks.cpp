#include "app/model/zoo/blocks.h"

#include <algorithm>

namespace convoy::app::zoo {

void add_conv_norm(Builder& net, const std::string& prefix, const Conv2d& conv, const BatchNorm& norm,
                   const std::optional<LayerOp>& activation) {
  net.add(prefix + ".0", conv).add(prefix + ".1", norm);
  if (activation) net.add(prefix + ".2", *activation);
}

void add_inception_conv(Builder& net, const std::string& name, Conv2d conv, double deviation) {
  conv.weight_initializer = Initializer::normal(deviation);
  net.add(name + ".conv", conv).add(name + ".bn", BatchNorm{.epsilon = 1e-3}).add(name + ".relu", Relu{});
}

Conv2d depthwise(std::int64_t channels, int kernel, int stride) {
  Conv2d conv = Conv2d::square(channels, kernel, stride, kernel / 2);
  conv.groups = static_cast<int>(channels);
  return conv;
}

void add_squeeze_excitation(Builder& net, const std::string& prefix, std::int64_t squeezed,
                            const LayerOp& activation, const LayerOp& gate) {
  const LayerId input = net.last();
  const std::int64_t channels = net.shape()[1];
  net.add(prefix + ".avgpool", Pool::global())
      .add(prefix + ".fc1", Conv2d::square(squeezed, 1, 1, 0, true))
      .add(prefix + ".activation", activation)
      .add(prefix + ".fc2", Conv2d::square(channels, 1, 1, 0, true))
      .add(prefix + ".scale_activation", gate);
  net.add(prefix + ".multiply", Multiply{}, {input, net.last()});
}

std::int64_t rounded_channels(double channels, std::int64_t divisor) {
  const auto nearest =
      static_cast<std::int64_t>(channels + static_cast<double>(divisor) / 2) / divisor * divisor;
  const std::int64_t rounded = std::max(divisor, nearest);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + divisor : rounded;
}

}  // namespace convoy::app::zoo
