// ShuffleNetV2 x0.5 and x1.0 (Ma et al. 2018) with the names and initial weights of torchvision.
#include <fmt/format.h>

#include <array>

#include "app/model/zoo/blocks.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {
namespace {

// Adds the layers of a branch with the names PREFIX.0, PREFIX.1, …
class Branch {
 public:
  Branch(Builder& net, std::string prefix) : net_(net), prefix_(std::move(prefix)) {}
  Branch& conv(const Conv2d& conv, bool relu) {
    add(with_uniform_weights(conv, net_.shape()[1]));
    add(BatchNorm{});
    if (relu) add(Relu{});
    return *this;
  }

 private:
  void add(LayerOp op) { net_.add(fmt::format("{}.{}", prefix_, index_++), std::move(op)); }
  Builder& net_;
  std::string prefix_;
  int index_ = 0;
};

void add_block(Builder& net, const std::string& prefix, std::int64_t outputs, int stride) {
  const LayerId input = net.last();
  const std::int64_t half = outputs / 2;
  LayerId left = input, right = input;
  if (stride == 1) {
    left = net.add(prefix + ".left", Slice{0, half}).last();
    right = net.from(input).add(prefix + ".right", Slice{half, half}).last();
  } else {
    Branch(net, prefix + ".branch1")
        .conv(depthwise(net.shape()[1], 3, stride), false)
        .conv(Conv2d::square(half, 1), true);
    left = net.last();
  }
  net.from(right);
  Branch(net, prefix + ".branch2")
      .conv(Conv2d::square(half, 1), true)
      .conv(depthwise(half, 3, stride), false)
      .conv(Conv2d::square(half, 1), true);
  net.add(prefix + ".concat", Concat{}, {left, net.last()}).add(prefix + ".shuffle", ChannelShuffle{2});
}

}  // namespace

Network shufflenet_v2(const std::string& name, const Shape& input, int classes) {
  const bool half = name.ends_with("x0_5");
  const std::array<int, 3> widths = half ? std::array{48, 96, 192} : std::array{116, 232, 464};
  Builder net(name, input);
  Branch(net, "conv1").conv(Conv2d::square(24, 3, 2, 1), true);
  net.add("maxpool", Pool::max(3, 2, 1));
  for (int stage = 0; stage < 3; ++stage) {
    constexpr std::array kBlocks{4, 8, 4};
    for (int block = 0; block < kBlocks[static_cast<std::size_t>(stage)]; ++block)
      add_block(net, fmt::format("stage{}.{}", stage + 2, block), widths[static_cast<std::size_t>(stage)],
                block == 0 ? 2 : 1);
  }
  Branch(net, "conv5").conv(Conv2d::square(1024, 1), true);
  return net.add("avgpool", Pool::global()).add("fc", Linear{classes}).take();
}

}  // namespace convoy::app::zoo
