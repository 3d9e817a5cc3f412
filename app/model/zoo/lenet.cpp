// LeNet (LeCun et al. 1998) in the wider form of framework tutorials, with two 5x5 convolutions and
// 512 hidden units.
#include "app/model/zoo/builder.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {

Network lenet(const std::string& name, const Shape& input, int classes) {
  return Builder(name, input)
      .add("conv1", with_uniform_weights(Conv2d::square(32, 5, 1, 2, true), input[1]))
      .add("relu1", Relu{})
      .add("pool1", Pool::max(2, 2))
      .add("conv2", with_uniform_weights(Conv2d::square(64, 5, 1, 2, true), 32))
      .add("relu2", Relu{})
      .add("pool2", Pool::max(2, 2))
      .add("fc1", Linear{512})
      .add("relu3", Relu{})
      .add("fc2", Linear{classes})
      .take();
}

}  // namespace convoy::app::zoo
