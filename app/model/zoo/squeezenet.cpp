// SqueezeNet 1.0 and 1.1 (Iandola et al. 2016) with the names and initial weights of torchvision.
#include <fmt/format.h>

#include <cmath>

#include "app/model/zoo/builder.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {
namespace {

Conv2d drawn(Conv2d conv, std::int64_t channels) {
  const double fan_in = static_cast<double>(channels) * conv.kernel[0] * conv.kernel[1];
  conv.weight_initializer = Initializer::uniform(std::sqrt(6 / fan_in));
  return conv;
}

void add_fire(Builder& net, int index, int squeezed, int expanded) {
  const std::string prefix = fmt::format("features.{}", index);
  net.add(prefix + ".squeeze", drawn(Conv2d::square(squeezed, 1, 1, 0, true), net.shape()[1]))
      .add(prefix + ".squeeze_activation", Relu{});
  const LayerId input = net.last();
  std::vector<LayerId> ends;
  for (const int kernel : {1, 3}) {
    const std::string name = fmt::format("{}.expand{}x{}", prefix, kernel, kernel);
    net.from(input)
        .add(name, drawn(Conv2d::square(expanded, kernel, 1, kernel / 2, true), squeezed))
        .add(name + "_activation", Relu{});
    ends.push_back(net.last());
  }
  net.add(prefix + ".concat", Concat{}, ends);
}

}  // namespace

Network squeezenet(const std::string& name, const Shape& input, int classes) {
  const bool first = name == "squeezenet1_0";
  Builder net(name, input);
  int index = 0;
  const auto pool = [&] { net.add(fmt::format("features.{}", index++), Pool::max(3, 2, 0, true)); };
  net.add("features.0",
          drawn(first ? Conv2d::square(96, 7, 2, 0, true) : Conv2d::square(64, 3, 2, 0, true), input[1]))
      .add("features.1", Relu{});
  index = 2;
  pool();
  for (const auto& [squeezed, expanded] :
       {std::pair{16, 64}, {16, 64}, {32, 128}, {32, 128}, {48, 192}, {48, 192}, {64, 256}, {64, 256}}) {
    add_fire(net, index++, squeezed, expanded);
    const bool ends_stage = first ? index == 6 || index == 11 : index == 5 || index == 8;
    if (ends_stage) pool();
  }
  Conv2d head = Conv2d::square(classes, 1, 1, 0, true);
  head.weight_initializer = Initializer::normal(0.01);
  return net.add("classifier.0", Dropout{0.5f})
      .add("classifier.1", head)
      .add("classifier.2", Relu{})
      .add("classifier.3", Pool::global())
      .add("flatten", Flatten{})
      .take();
}

}  // namespace convoy::app::zoo
