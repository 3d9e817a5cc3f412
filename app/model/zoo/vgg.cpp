// VGG-16 (configuration D of Simonyan & Zisserman 2015), with and without batch norm, and VGG-11
// (configuration A), with the names and initial weights of torchvision.
#include <fmt/format.h>

#include "app/model/zoo/builder.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {
namespace {

Linear fully_connected(std::int64_t outputs) {
  return {outputs, true, Initializer::normal(0.01), Initializer::constant(0)};
}

struct Stage {
  int convolutions, filters;
};

}  // namespace

Network vgg(const std::string& name, const Shape& input, int classes) {
  Builder net(name, input);
  int index = 0;
  const auto feature = [&](const LayerOp& op) { net.add(fmt::format("features.{}", index++), op); };
  const bool deep = name.starts_with("vgg16"), normed = name.ends_with("_bn");
  const int most = deep ? 3 : 2, first = deep ? 2 : 1;
  for (const Stage stage :
       {Stage{first, 64}, Stage{first, 128}, Stage{most, 256}, Stage{most, 512}, Stage{most, 512}}) {
    for (int i = 0; i < stage.convolutions; ++i) {
      feature(Conv2d::square(stage.filters, 3, 1, 1, true));
      if (normed) feature(BatchNorm{});
      feature(Relu{});
    }
    feature(Pool::max(2, 2));
  }
  add_adaptive_average(net, "avgpool", 7, [](std::int64_t side) { return side / 32; });

  return net.add("classifier.0", fully_connected(4096))
      .add("classifier.1", Relu{})
      .add("classifier.2", Dropout{})
      .add("classifier.3", fully_connected(4096))
      .add("classifier.4", Relu{})
      .add("classifier.5", Dropout{})
      .add("classifier.6", fully_connected(classes))
      .take();
}

}  // namespace convoy::app::zoo
