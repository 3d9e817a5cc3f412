// Caffe's "CIFAR-10 quick" network, which follows cuda-convnet's layers-80sec (Krizhevsky 2011).
// Layers, names and initial weights are those that Caffe published.
#include "app/model/zoo/builder.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {
namespace {

Conv2d conv(std::int64_t filters, double deviation) {
  Conv2d conv = Conv2d::square(filters, 5, 1, 2, true);
  conv.weight_initializer = Initializer::normal(deviation);
  return conv;
}

Linear inner_product(std::int64_t outputs) {
  return {outputs, true, Initializer::normal(0.1), Initializer::constant(0)};
}

Pool average() {
  Pool pool = Pool::average(3, 2);
  pool.ceil_mode = true;
  return pool;
}

}  // namespace

Network cifar10_quick(const std::string& name, const Shape& input, int classes) {
  // Caffe's deviation of 0.0001 is for pixels with a standard deviation of about 62. Here pixels
  // have a standard deviation of 1.
  const double first_deviation = 0.0001 * 62;
  return Builder(name, input)
      .add("conv1", conv(32, first_deviation))
      .add("pool1", Pool::max(3, 2, 0, true))
      .add("relu1", Relu{})
      .add("conv2", conv(32, 0.01))
      .add("relu2", Relu{})
      .add("pool2", average())
      .add("conv3", conv(64, 0.01))
      .add("relu3", Relu{})
      .add("pool3", average())
      .add("ip1", inner_product(64))
      .add("ip2", inner_product(classes))
      .take();
}

}  // namespace convoy::app::zoo
