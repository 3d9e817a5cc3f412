// Residual networks (He et al. 2016), ResNeXt (Xie et al. 2017) and wide ResNet-50 (Zagoruyko &
// Komodakis 2016), with torchvision's names and initial weights. Networks up to depth 34 have basic
// blocks. Deeper networks have bottlenecks with the stride in their 3x3 convolution ("v1.5"), which
// ResNeXt splits into groups. NAME_cifar is for small images. As in section 4.2 of He et al., its
// first convolution is 3x3 without stride, and there is no max pool.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "app/model/zoo/builder.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {
namespace {

struct Variant {
  std::string_view name;
  bool bottleneck;
  std::array<int, 4> blocks;  // the number of blocks in each stage
  // The number of groups of a bottleneck's 3x3 convolution, and the filters of each group in the
  // first stage.
  int groups = 1, group_width = 64;
};

constexpr std::array kVariants{Variant{"resnet18", false, {2, 2, 2, 2}},
                               Variant{"resnet34", false, {3, 4, 6, 3}},
                               Variant{"resnet50", true, {3, 4, 6, 3}},
                               Variant{"resnet101", true, {3, 4, 23, 3}},
                               Variant{"resnet152", true, {3, 8, 36, 3}},
                               Variant{"resnext50_32x4d", true, {3, 4, 6, 3}, 32, 4},
                               Variant{"resnext101_32x8d", true, {3, 4, 23, 3}, 32, 8},
                               Variant{"wide_resnet50_2", true, {3, 4, 6, 3}, 1, 128}};

void add_block(Builder& net, const std::string& prefix, const Variant& variant, int filters, int stride) {
  const LayerId input = net.last();
  const std::int64_t input_channels = net.shape()[1], outputs = variant.bottleneck ? 4 * filters : filters;
  const auto conv = [&](int number, std::int64_t width, int kernel, int step, int groups = 1) {
    Conv2d op = Conv2d::square(width, kernel, step, kernel / 2);
    op.groups = groups;
    net.add(fmt::format("{}.conv{}", prefix, number), op)
        .add(fmt::format("{}.bn{}", prefix, number), BatchNorm{});
  };
  const auto relu = [&](int number) { net.add(fmt::format("{}.relu{}", prefix, number), Relu{}); };
  int last = 2;
  if (variant.bottleneck) {
    const int width = filters * variant.group_width / 64 * variant.groups;
    conv(1, width, 1, 1);
    relu(1);
    conv(2, width, 3, stride, variant.groups);
    relu(2);
    conv(last = 3, outputs, 1, 1);
  } else {
    conv(1, filters, 3, stride);
    relu(1);
    conv(2, outputs, 3, 1);
  }
  const LayerId residual = net.last();
  LayerId shortcut = input;
  if (stride != 1 || input_channels != outputs)
    shortcut = net.from(input)
                   .add(prefix + ".downsample.0", Conv2d::square(outputs, 1, stride))
                   .add(prefix + ".downsample.1", BatchNorm{})
                   .last();
  net.add(prefix + ".add", Add{}, {residual, shortcut});
  relu(last);
}

}  // namespace

Network resnet(const std::string& name, const Shape& input, int classes) {
  const bool small_images = name.ends_with("_cifar");
  const auto is_it = [&](const Variant& variant) {
    return name == variant.name || (small_images && name == fmt::format("{}_cifar", variant.name));
  };
  const auto variant = std::find_if(kVariants.begin(), kVariants.end(), is_it);
  if (variant == kVariants.end()) throw std::logic_error(fmt::format("{} is no residual network", name));

  Builder net(name, input);
  net.add("conv1", small_images ? Conv2d::square(64, 3, 1, 1) : Conv2d::square(64, 7, 2, 3))
      .add("bn1", BatchNorm{})
      .add("relu", Relu{});
  if (!small_images) net.add("maxpool", Pool::max(3, 2, 1));
  for (int stage = 0; stage < 4; ++stage)
    for (int block = 0; block < variant->blocks[static_cast<std::size_t>(stage)]; ++block)
      add_block(net, fmt::format("layer{}.{}", stage + 1, block), *variant, 64 << stage,
                stage > 0 && block == 0 ? 2 : 1);
  return net.add("avgpool", Pool::global()).add("fc", Linear{classes}).take();
}

}  // namespace convoy::app::zoo
