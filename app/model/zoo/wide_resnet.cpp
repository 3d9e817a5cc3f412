// Wide residual networks (Zagoruyko & Komodakis 2016) for small images, of any depth 6n + 4 and any
// width. They have pre-activation blocks of two 3x3 convolutions. For example "wrn28_10" has depth
// 28 and width 10.
#include <fmt/format.h>

#include <charconv>

#include "app/errors.h"
#include "app/model/zoo/builder.h"
#include "app/model/zoo/networks.h"
#include "app/model/zoo/zoo.h"

namespace convoy::app::zoo {
namespace {

void add_block(Builder& net, const std::string& prefix, int filters, int stride) {
  LayerId shortcut = net.last();
  const bool same = net.shape()[1] == filters && stride == 1;
  net.add(prefix + ".bn1", BatchNorm{}).add(prefix + ".relu1", Relu{});
  const LayerId activated = net.last();
  net.add(prefix + ".conv1", Conv2d::square(filters, 3, stride, 1))
      .add(prefix + ".bn2", BatchNorm{})
      .add(prefix + ".relu2", Relu{})
      .add(prefix + ".conv2", Conv2d::square(filters, 3, 1, 1));
  const LayerId residual = net.last();
  if (!same)
    shortcut = net.from(activated).add(prefix + ".shortcut", Conv2d::square(filters, 1, stride)).last();
  net.add(prefix + ".add", Add{}, {residual, shortcut});
}

}  // namespace

WideResnetExtent wide_resnet_extent(const std::string& name) {
  WideResnetExtent extent;
  const char *const begin = name.data() + 3, *const end = name.data() + name.size();
  const auto depth = std::from_chars(begin, end, extent.depth);
  const bool separated = depth.ec == std::errc{} && depth.ptr != end && *depth.ptr == '_';
  const auto width = separated ? std::from_chars(depth.ptr + 1, end, extent.width) : depth;
  if (!separated || width.ec != std::errc{} || width.ptr != end)
    throw UsageError(fmt::format("unknown model \"{}\", expected wrnDEPTH_WIDTH such as wrn28_10", name));
  if (extent.depth < 10 || extent.depth > 1000 || extent.depth % 6 != 4)
    throw UsageError(
        fmt::format("model {}: its depth is {}, expected 6n + 4 up to 1000: 10, 16, 22, 28, 34, 40, …", name,
                    extent.depth));
  if (extent.width < 1 || extent.width > 1000)
    throw UsageError(fmt::format("model {}: its width is {}, expected 1 to 1000", name, extent.width));
  return extent;
}
Network wide_resnet(const std::string& name, const Shape& input, int classes) {
  const WideResnetExtent extent = wide_resnet_extent(name);
  Builder net(name, input);
  net.add("conv1", Conv2d::square(16, 3, 1, 1));
  for (int stage = 0; stage < 3; ++stage)
    for (int block = 0; block < (extent.depth - 4) / 6; ++block)
      add_block(net, fmt::format("layer{}.{}", stage + 1, block), (16 << stage) * extent.width,
                stage > 0 && block == 0 ? 2 : 1);
  return net.add("bn", BatchNorm{})
      .add("relu", Relu{})
      .add("avgpool", Pool::global())
      .add("fc", Linear{classes})
      .take();
}

}  // namespace convoy::app::zoo
