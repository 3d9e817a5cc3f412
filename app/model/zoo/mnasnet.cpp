// MNASNet-B1 (Tan et al. 2019) with widths 0.5 and 1.0 and the names and initial weights of
// torchvision.
#include <fmt/format.h>

#include <cmath>

#include "app/model/zoo/blocks.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {
namespace {

const BatchNorm kNorm{.momentum = 1 - 0.9997};

struct Stack {
  int outputs, kernel, stride, expansion, blocks;
};

void add_block(Builder& net, const std::string& prefix, std::int64_t outputs, int kernel, int stride,
               int expansion) {
  const LayerId input = net.last();
  const std::int64_t channels = net.shape()[1], hidden = channels * expansion;
  net.add(prefix + ".layers.0", Conv2d::square(hidden, 1))
      .add(prefix + ".layers.1", kNorm)
      .add(prefix + ".layers.2", Relu{})
      .add(prefix + ".layers.3", depthwise(hidden, kernel, stride))
      .add(prefix + ".layers.4", kNorm)
      .add(prefix + ".layers.5", Relu{})
      .add(prefix + ".layers.6", Conv2d::square(outputs, 1))
      .add(prefix + ".layers.7", kNorm);
  if (stride == 1 && channels == outputs) net.add(prefix + ".add", Add{}, {net.last(), input});
}

}  // namespace

Network mnasnet(const std::string& name, const Shape& input, int classes) {
  const double width = name.ends_with("0_5") ? 0.5 : 1.0;
  const auto channels = [&](int of) { return rounded_channels(of * width); };
  Builder net(name, input);
  net.add("layers.0", Conv2d::square(channels(32), 3, 2, 1))
      .add("layers.1", kNorm)
      .add("layers.2", Relu{})
      .add("layers.3", depthwise(channels(32), 3, 1))
      .add("layers.4", kNorm)
      .add("layers.5", Relu{})
      .add("layers.6", Conv2d::square(channels(16), 1))
      .add("layers.7", kNorm);
  int index = 8;
  for (const Stack& stack : {Stack{24, 3, 2, 3, 3}, Stack{40, 5, 2, 3, 3}, Stack{80, 5, 2, 6, 3},
                             Stack{96, 3, 1, 6, 2}, Stack{192, 5, 2, 6, 4}, Stack{320, 3, 1, 6, 1}}) {
    for (int block = 0; block < stack.blocks; ++block)
      add_block(net, fmt::format("layers.{}.{}", index, block), channels(stack.outputs), stack.kernel,
                block == 0 ? stack.stride : 1, stack.expansion);
    ++index;
  }
  return net.add("layers.14", Conv2d::square(1280, 1))
      .add("layers.15", kNorm)
      .add("layers.16", Relu{})
      .add("avgpool", Pool::global())
      .add("classifier.0", Dropout{0.2f})
      .add("classifier.1",
           Linear{classes, true, Initializer::uniform(std::sqrt(3.0 / classes)), Initializer::constant(0)})
      .take();
}

}  // namespace convoy::app::zoo
