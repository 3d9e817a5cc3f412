// AlexNet in the one-column form of Krizhevsky 2014 ("One weird trick…"), with the names and
// initial weights of torchvision.
#include <fmt/format.h>

#include "app/model/zoo/builder.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {

Network alexnet(const std::string& name, const Shape& input, int classes) {
  Builder net(name, input);
  int index = 0;
  const auto feature = [&](const LayerOp& op) { net.add(fmt::format("features.{}", index++), op); };
  const auto conv = [&](int filters, int kernel, int stride, int padding) {
    feature(with_uniform_weights(Conv2d::square(filters, kernel, stride, padding, true), net.shape()[1]));
    feature(Relu{});
  };
  conv(64, 11, 4, 2);
  feature(Pool::max(3, 2));
  conv(192, 5, 1, 2);
  feature(Pool::max(3, 2));
  conv(384, 3, 1, 1);
  conv(256, 3, 1, 1);
  conv(256, 3, 1, 1);
  feature(Pool::max(3, 2));

  const auto pooled = [](std::int64_t side) { return side < 3 ? 0 : (side - 3) / 2 + 1; };
  const auto side_of_features = [&](std::int64_t side) {
    return side < 7 ? 0 : pooled(pooled(pooled((side - 7) / 4 + 1)));
  };
  add_adaptive_average(net, "avgpool", 6, side_of_features);

  return net.add("classifier.0", Dropout{})
      .add("classifier.1", Linear{4096})
      .add("classifier.2", Relu{})
      .add("classifier.3", Dropout{})
      .add("classifier.4", Linear{4096})
      .add("classifier.5", Relu{})
      .add("classifier.6", Linear{classes})
      .take();
}

}  // namespace convoy::app::zoo
