// Networks without convolutions: softmax regression, and a network with two hidden layers of 512
// units.
#include "app/model/zoo/builder.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {

Network linear(const std::string& name, const Shape& input, int classes) {
  return Builder(name, input).add("fc", Linear{classes}).take();
}

Network mlp(const std::string& name, const Shape& input, int classes) {
  return Builder(name, input)
      .add("fc1", Linear{512})
      .add("relu1", Relu{})
      .add("fc2", Linear{512})
      .add("relu2", Relu{})
      .add("fc3", Linear{classes})
      .take();
}

}  // namespace convoy::app::zoo
