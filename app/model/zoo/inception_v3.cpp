// Inception v3 (Szegedy et al. 2016) with the names and initial weights of torchvision, without the
// auxiliary classifier. It was designed for images of 299 x 299 pixels and takes at least 75 x 75.
#include <string>
#include <utility>
#include <vector>

#include "app/model/zoo/blocks.h"
#include "app/model/zoo/networks.h"

namespace convoy::app::zoo {
namespace {

constexpr double kDeviation = 0.1;

// A convolution of a branch. Stride 1 comes with padding that keeps the image's size, stride 2 with
// no padding.
struct Conv {
  std::string name;
  int filters, height, width, stride = 1;
};

// Builds parallel branches that start at the last layer. join() concatenates their ends.
class Block {
 public:
  Block(Builder& net, const std::string& name) : net_(net), prefix_(name + "."), start_(net.last()) {}

  Block& branch(const auto&... chain) { return end(start_, chain...); }
  Block& pool_branch(const Pool& pool, const auto&... chain) {
    return end(net_.from(start_).add(prefix_ + "pool", pool).last(), chain...);
  }
  // Adds a branch that ends in two parallel convolutions, 1x3 with the name LASTa and 3x1 with
  // LASTb.
  Block& split_branch(const std::string& last, const auto&... chain) {
    branch(chain...);
    const LayerId middle = ends_.back();
    ends_.pop_back();
    return end(middle, Conv{last + "a", 384, 1, 3}).end(middle, Conv{last + "b", 384, 3, 1});
  }
  void join() { net_.add(prefix_ + "concat", Concat{}, ends_); }

 private:
  void add(const Conv& conv) {
    Conv2d op{
        .filters = conv.filters, .kernel = {conv.height, conv.width}, .stride = {conv.stride, conv.stride}};
    if (conv.stride == 1) op.padding = {conv.height / 2, conv.width / 2};
    add_inception_conv(net_, prefix_ + conv.name, op, kDeviation);
  }
  Block& end(LayerId start, const auto&... chain) {
    net_.from(start);
    (add(chain), ...);
    ends_.push_back(net_.last());
    return *this;
  }
  Builder& net_;
  std::string prefix_;
  LayerId start_;
  std::vector<LayerId> ends_;
};

void add_blocks(Builder& net) {
  const Conv dbl1{"branch3x3dbl_1", 64, 1, 1}, dbl2{"branch3x3dbl_2", 96, 3, 3};
  for (const auto& [name, pooled] : {std::pair{"Mixed_5b", 32}, {"Mixed_5c", 64}, {"Mixed_5d", 64}})
    Block(net, name)
        .branch(Conv{"branch1x1", 64, 1, 1})
        .branch(Conv{"branch5x5_1", 48, 1, 1}, Conv{"branch5x5_2", 64, 5, 5})
        .branch(dbl1, dbl2, Conv{"branch3x3dbl_3", 96, 3, 3})
        .pool_branch(Pool::average(3, 1, 1), Conv{"branch_pool", pooled, 1, 1})
        .join();
  Block(net, "Mixed_6a")
      .branch(Conv{"branch3x3", 384, 3, 3, 2})
      .branch(dbl1, dbl2, Conv{"branch3x3dbl_3", 96, 3, 3, 2})
      .pool_branch(Pool::max(3, 2))
      .join();
  for (const auto& [name, c] :
       {std::pair{"Mixed_6b", 128}, {"Mixed_6c", 160}, {"Mixed_6d", 160}, {"Mixed_6e", 192}})
    Block(net, name)
        .branch(Conv{"branch1x1", 192, 1, 1})
        .branch(Conv{"branch7x7_1", c, 1, 1}, Conv{"branch7x7_2", c, 1, 7}, Conv{"branch7x7_3", 192, 7, 1})
        .branch(Conv{"branch7x7dbl_1", c, 1, 1}, Conv{"branch7x7dbl_2", c, 7, 1},
                Conv{"branch7x7dbl_3", c, 1, 7}, Conv{"branch7x7dbl_4", c, 7, 1},
                Conv{"branch7x7dbl_5", 192, 1, 7})
        .pool_branch(Pool::average(3, 1, 1), Conv{"branch_pool", 192, 1, 1})
        .join();
  Block(net, "Mixed_7a")
      .branch(Conv{"branch3x3_1", 192, 1, 1}, Conv{"branch3x3_2", 320, 3, 3, 2})
      .branch(Conv{"branch7x7x3_1", 192, 1, 1}, Conv{"branch7x7x3_2", 192, 1, 7},
              Conv{"branch7x7x3_3", 192, 7, 1}, Conv{"branch7x7x3_4", 192, 3, 3, 2})
      .pool_branch(Pool::max(3, 2))
      .join();
  for (const char* name : {"Mixed_7b", "Mixed_7c"})
    Block(net, name)
        .branch(Conv{"branch1x1", 320, 1, 1})
        .split_branch("branch3x3_2", Conv{"branch3x3_1", 384, 1, 1})
        .split_branch("branch3x3dbl_3", Conv{"branch3x3dbl_1", 448, 1, 1}, Conv{"branch3x3dbl_2", 384, 3, 3})
        .pool_branch(Pool::average(3, 1, 1), Conv{"branch_pool", 192, 1, 1})
        .join();
}

}  // namespace

Network inception_v3(const std::string& name, const Shape& input, int classes) {
  Builder net(name, input);
  const auto stem = [&](const char* at, const Conv2d& op) { add_inception_conv(net, at, op, kDeviation); };
  stem("Conv2d_1a_3x3", Conv2d::square(32, 3, 2));
  stem("Conv2d_2a_3x3", Conv2d::square(32, 3));
  stem("Conv2d_2b_3x3", Conv2d::square(64, 3, 1, 1));
  net.add("maxpool1", Pool::max(3, 2));
  stem("Conv2d_3b_1x1", Conv2d::square(80, 1));
  stem("Conv2d_4a_3x3", Conv2d::square(192, 3));
  net.add("maxpool2", Pool::max(3, 2));
  add_blocks(net);
  return net.add("avgpool", Pool::global())
      .add("dropout", Dropout{0.5f})
      .add("fc", Linear{.outputs = classes, .weight_initializer = Initializer::normal(kDeviation)})
      .take();
}

}  // namespace convoy::app::zoo
