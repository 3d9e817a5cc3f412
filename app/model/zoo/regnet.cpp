// RegNet X and Y (Radosavovic et al. 2020) with the names and initial weights of torchvision. The
// width of a block is a linear function of its index, rounded to w_0 times a power of w_m, and then
// to a multiple of the groups' width.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "app/model/zoo/blocks.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {
namespace {

struct Variant {
  std::string_view name;
  int depth, w_0;
  double w_a, w_m;
  int group_width;
  // The number of squeezed channels of squeeze-and-excitation divided by the block's input
  // channels. 0 means no squeeze-and-excitation.
  double squeeze;
};
constexpr std::array kVariants{Variant{"regnet_x_400mf", 22, 24, 24.48, 2.54, 16, 0},
                               Variant{"regnet_y_400mf", 16, 48, 27.89, 2.09, 8, 0.25},
                               Variant{"regnet_y_8gf", 17, 192, 76.82, 2.19, 56, 0.25}};

struct Stage {
  int width, group_width, blocks;
};

std::vector<Stage> stages_of(const Variant& variant) {
  std::vector<int> widths;  // the width of each block
  for (int block = 0; block < variant.depth; ++block) {
    const double line = block * variant.w_a + variant.w_0;
    const double step = std::round(std::log(line / variant.w_0) / std::log(variant.w_m));
    widths.push_back(static_cast<int>(std::round(variant.w_0 * std::pow(variant.w_m, step) / 8)) * 8);
  }
  std::vector<Stage> stages;
  for (const int width : widths) {
    const int group_width = std::min(variant.group_width, width);
    const auto rounded = static_cast<int>(rounded_channels(width, group_width));
    if (stages.empty() || stages.back().width != rounded) stages.push_back({rounded, group_width, 0});
    ++stages.back().blocks;
  }
  return stages;
}

void add_block(Builder& net, const std::string& prefix, const Stage& stage, int stride, double squeeze) {
  const LayerId input = net.last();
  const std::int64_t channels = net.shape()[1];
  LayerId shortcut = input;
  if (stride != 1 || channels != stage.width) {
    add_conv_norm(net, prefix + ".proj", Conv2d::square(stage.width, 1, stride), BatchNorm{}, {});
    shortcut = net.last();
    net.from(input);
  }
  add_conv_norm(net, prefix + ".f.a", Conv2d::square(stage.width, 1), BatchNorm{}, Relu{});
  Conv2d grouped = Conv2d::square(stage.width, 3, stride, 1);
  grouped.groups = stage.width / stage.group_width;
  add_conv_norm(net, prefix + ".f.b", grouped, BatchNorm{}, Relu{});
  if (squeeze > 0)
    add_squeeze_excitation(net, prefix + ".f.se",
                           static_cast<std::int64_t>(std::nearbyint(squeeze * static_cast<double>(channels))),
                           Relu{}, Activation::of(kernels::ActivationKind::sigmoid));
  add_conv_norm(net, prefix + ".f.c", Conv2d::square(stage.width, 1), BatchNorm{}, {});
  net.add(prefix + ".add", Add{}, {shortcut, net.last()}).add(prefix + ".activation", Relu{});
}

}  // namespace

Network regnet(const std::string& name, const Shape& input, int classes) {
  const Variant& variant = *std::ranges::find(kVariants, name, &Variant::name);
  Builder net(name, input);
  add_conv_norm(net, "stem", Conv2d::square(32, 3, 2, 1), BatchNorm{}, Relu{});
  int index = 1;
  for (const Stage& stage : stages_of(variant)) {
    for (int block = 0; block < stage.blocks; ++block)
      add_block(net, fmt::format("trunk_output.block{}.block{}-{}", index, index, block), stage,
                block == 0 ? 2 : 1, variant.squeeze);
    ++index;
  }
  return net.add("avgpool", Pool::global())
      .add("fc", Linear{classes, true, Initializer::normal(0.01), Initializer::constant(0)})
      .take();
}

}  // namespace convoy::app::zoo
