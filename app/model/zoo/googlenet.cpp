// GoogLeNet (Szegedy et al. 2015) as in torchvision, with a batch norm after every convolution and
// 3x3 kernels in place of the paper's 5x5. There are no auxiliary classifiers.
#include "app/model/zoo/blocks.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {
namespace {

void add_conv(Builder& net, const std::string& name, int filters, int kernel, int stride = 1) {
  add_inception_conv(net, name, Conv2d::square(filters, kernel, stride, kernel / 2), 0.01);
}

// The numbers of filters in the four branches. `reduce2` and `reduce3` belong to the 1x1
// convolutions before the larger convolutions of branches 2 and 3.
struct Inception {
  int conv1, reduce2, conv2, reduce3, conv3, projection;
};

void add_inception(Builder& net, const std::string& name, const Inception& filters) {
  const LayerId input = net.last();
  std::vector<LayerId> branches;
  const auto end_branch = [&] {
    branches.push_back(net.last());
    net.from(input);
  };
  add_conv(net, name + ".branch1", filters.conv1, 1);
  end_branch();
  add_conv(net, name + ".branch2.0", filters.reduce2, 1);
  add_conv(net, name + ".branch2.1", filters.conv2, 3);
  end_branch();
  add_conv(net, name + ".branch3.0", filters.reduce3, 1);
  add_conv(net, name + ".branch3.1", filters.conv3, 3);
  end_branch();
  net.add(name + ".branch4.0", Pool::max(3, 1, 1, true));
  add_conv(net, name + ".branch4.1", filters.projection, 1);
  end_branch();
  net.add(name + ".concat", Concat{}, branches);
}

}  // namespace

Network googlenet(const std::string& name, const Shape& input, int classes) {
  Builder net(name, input);
  add_conv(net, "conv1", 64, 7, 2);
  net.add("maxpool1", Pool::max(3, 2, 0, true));
  add_conv(net, "conv2", 64, 1);
  add_conv(net, "conv3", 192, 3);
  net.add("maxpool2", Pool::max(3, 2, 0, true));
  add_inception(net, "inception3a", {64, 96, 128, 16, 32, 32});
  add_inception(net, "inception3b", {128, 128, 192, 32, 96, 64});
  net.add("maxpool3", Pool::max(3, 2, 0, true));
  add_inception(net, "inception4a", {192, 96, 208, 16, 48, 64});
  add_inception(net, "inception4b", {160, 112, 224, 24, 64, 64});
  add_inception(net, "inception4c", {128, 128, 256, 24, 64, 64});
  add_inception(net, "inception4d", {112, 144, 288, 32, 64, 64});
  add_inception(net, "inception4e", {256, 160, 320, 32, 128, 128});
  net.add("maxpool4", Pool::max(2, 2, 0, true));
  add_inception(net, "inception5a", {256, 160, 320, 32, 128, 128});
  add_inception(net, "inception5b", {384, 192, 384, 48, 128, 128});
  return net.add("avgpool", Pool::global())
      .add("dropout", Dropout{0.2f})
      .add("fc", Linear{classes, true, Initializer::normal(0.01)})
      .take();
}

}  // namespace convoy::app::zoo
