// Networks that are small enough for the reference backend. Together they have every layer type.
#pragma once

#include <string>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

// Returns a network with convolutions (grouped, strided, dilated, with bias), every kind of pool,
// local response norm, dropout, concat, batch norm, ReLU and linear layers. Three layers read one
// of its tensors.
inline Network every_op() {
  Network net("every_op", {4, 3, 9, 10});
  const LayerId conv1 = net.add("conv1", Conv2d::square(8, 3, 1, 1, true), net.input());
  const LayerId relu1 = net.add("relu1", Relu{}, conv1);
  const LayerId lrn = net.add("lrn", LocalResponseNorm{3, 0.5f, 0.75f, 1.0f}, relu1);
  const LayerId pool1 = net.add("pool1", Pool::max(3, 2, 1), lrn);
  const LayerId conv2 = net.add(
      "conv2",
      Conv2d{
          .filters = 6, .kernel = {3, 3}, .padding = {2, 2}, .dilation = {2, 2}, .groups = 2, .bias = true},
      pool1);
  const LayerId conv3 = net.add("conv3", Conv2d::square(4, 3, 1, 1), pool1);
  const LayerId norm3 = net.add("norm3", BatchNorm{}, conv3);
  const LayerId relu3 = net.add("relu3", Relu{}, norm3);
  const LayerId concat = net.add("concat", Concat{}, {conv2, relu3, pool1});
  const LayerId pool2 = net.add("pool2", Pool::average(3, 2, 1), concat);
  const LayerId drop = net.add("dropout", Dropout{0.3f}, pool2);
  const LayerId fc1 = net.add("fc1", Linear{12}, drop);
  const LayerId relu4 = net.add("relu4", Relu{}, fc1);
  net.add("fc2", Linear{5}, relu4);
  return net;
}

// Returns a network of residual blocks, each with different layers around it: two with the ReLU
// after the sum (with and without a convolution in the shortcut), and one with pre-activation. It
// also has a sum of three tensors.
inline Network residual() {
  Network net("residual", {4, 3, 8, 8});
  const auto conv_norm = [&](const std::string& name, LayerId input, int filters, int kernel, int stride) {
    const LayerId conv = net.add(name + ".conv", Conv2d::square(filters, kernel, stride, kernel / 2), input);
    return net.add(name + ".bn", BatchNorm{}, conv);
  };
  const auto relu = [&](const std::string& name, LayerId input) {
    return net.add(name + ".relu", Relu{}, input);
  };
  const LayerId stem = relu("stem", conv_norm("stem", net.input(), 6, 3, 1));
  const LayerId a = relu("a", conv_norm("a", stem, 6, 3, 1));
  const LayerId identity = relu("b", net.add("b.add", Add{}, {conv_norm("b", a, 6, 3, 1), stem}));
  const LayerId main = conv_norm("c", identity, 8, 3, 2);
  const LayerId shortcut = conv_norm("c.shortcut", identity, 8, 1, 2);
  const LayerId down = relu("c", net.add("c.add", Add{}, {main, shortcut}));
  const LayerId normed = relu("d", net.add("d.bn", BatchNorm{}, down));
  const LayerId d1 = net.add("d.conv1", Conv2d::square(8, 3, 1, 1), normed);
  const LayerId d2 = net.add("d.conv2", Conv2d::square(8, 1), normed);
  const LayerId three = net.add("d.add", Add{}, {d1, d2, down});
  const LayerId end = relu("end", net.add("end.bn", BatchNorm{}, three));
  net.add("fc", Linear{5}, net.add("pool", Pool::global(), end));
  return net;
}

// Returns a network with a ReLU after each convolution. The readers of the ReLUs' outputs differ: a
// convolution, a pool, two layers, a sum, a linear layer. Kernels for tensor cores need its eight
// channels.
inline Network rectifying() {
  Network net("rectifying", {4, 3, 8, 8});
  const auto conv = [&](const std::string& name, LayerId input) {
    return net.add(name + ".relu", Relu{}, net.add(name, Conv2d::square(8, 3, 1, 1, true), input));
  };
  const LayerId pool = net.add("pool", Pool::max(2, 2), conv("b", conv("a", net.input())));
  const LayerId both = conv("c", pool);
  const LayerId end = net.add("add", Add{}, {conv("d", both), conv("e", both)});
  net.add("fc", Linear{5}, conv("f", end));
  return net;
}

// Returns a network of grouped convolutions. Some groups have four channels, which is narrower than
// a GPU's tiles and for which oneDNN has a special layout. Others have many channels, or one.
inline Network grouped() {
  Network net("grouped", {4, 3, 8, 8});
  LayerId last = net.add("conv0", Conv2d::square(128, 3, 1, 1), net.input());
  const auto add = [&](const std::string& name, int groups, int stride) {
    last = net.add(name + ".relu", Relu{}, net.add(name + ".bn", BatchNorm{}, last));
    Conv2d conv = Conv2d::square(128, 3, stride, 1);
    conv.groups = groups;
    last = net.add(name, conv, last);
  };
  add("conv1", 32, 1), add("conv2", 2, 2), add("conv3", 128, 1);
  net.add("fc", Linear{5}, net.add("pool", Pool::global(), net.add("relu", Relu{}, last)));
  return net;
}

// Returns a network with the layers of mobile and modern networks: smooth activations, gates,
// stochastic depth, a channel shuffle over slices, layer norm, group norm, layer scale, parametric
// ReLUs, padding and a softmax.
inline Network modern() {
  using kernels::ActivationKind;
  Network net("modern", {4, 3, 7, 6});
  const auto act = [&](const std::string& name, ActivationKind kind, LayerId input) {
    return net.add(name, Activation::of(kind), input);
  };
  LayerId x = net.add("pad", Pad{{.bottom = 1, .right = 2, .value = 0.25f}}, net.input());
  x = net.add("stem.bn", BatchNorm{}, net.add("stem", Conv2d::square(8, 3, 1, 1), x));
  x = act("stem.act", ActivationKind::hard_swish, x);
  const LayerId squeezed = net.add("squeeze", Pool::global(), x);
  LayerId gate =
      act("se.act", ActivationKind::silu, net.add("se.1", Conv2d::square(4, 1, 1, 0, true), squeezed));
  gate = net.add("se.2", Conv2d::square(8, 1, 1, 0, true), gate);
  gate = net.add("se.gate", Activation::hard_sigmoid(), gate);
  const LayerId excited = net.add("se.multiply", Multiply{}, {x, gate});
  const LayerId kept = net.add("depth", Dropout{0.4f, true}, excited);
  x = net.add("add", Add{}, {kept, x});
  const LayerId left = act("left", ActivationKind::silu, net.add("slice1", Slice{0, 3}, x));
  const LayerId right = act("right", ActivationKind::sigmoid, net.add("slice2", Slice{3, 5}, x));
  x = net.add("shuffle", ChannelShuffle{4}, net.add("concat", Concat{}, {left, right}));
  x = net.add("relu", Relu{}, net.add("bn", BatchNorm{}, x));
  x = net.add("ln", LayerNorm{}, x);
  x = act("leaky", ActivationKind::leaky_relu, net.add("conv2", Conv2d::square(8, 1, 1, 0, true), x));
  x = net.add("scale", Scale{0.5}, x);
  x = net.add("prelu", Prelu{true}, net.add("gn", GroupNorm{2}, x));
  x = net.add("relu6", Activation::relu6(), net.add("bias", Bias{}, x));
  x = net.add("softmax", Softmax{}, net.add("add_gate", Add{}, {x, gate}));
  x = net.add("average", Pool{kernels::PoolKind::average, {3, 2}, {2, 1}, {1, 1}, false, false}, x);
  x = net.add("sigmoid", Activation::of(ActivationKind::sigmoid), net.add("prelu1", Prelu{}, x));
  x = net.add("head", Conv2d::square(5, 1, 1, 0, true), x);
  net.add("flatten", Flatten{}, net.add("pool", Pool::global(), x));
  return net;
}

// Returns a network in which every kind of activation has a branch.
inline Network activations() {
  Network net("activations", {4, 3, 6, 5});
  const LayerId x = net.add("conv", Conv2d::square(4, 3, 1, 1, true), net.input());
  std::vector<LayerId> branches;
  for (int i = 0; i < kernels::kActivationKinds; ++i) {
    const auto kind = static_cast<kernels::ActivationKind>(i);
    branches.push_back(net.add(kernels::name_of(kind), Activation::of(kind), x));
  }
  net.add("fc", Linear{5}, net.add("pool", Pool::global(), net.add("concat", Concat{}, branches)));
  return net;
}

// Returns a network like VGG: convolutions with ReLUs, pools, and a classifier.
inline Network plain(std::int64_t batch, std::int64_t size = 16, int channels = 8) {
  Network net("plain", {batch, 3, size, size});
  LayerId x = net.input();
  for (int block = 0; block < 3; ++block) {
    const std::string name = "block" + std::to_string(block);
    for (int i = 0; i < 2; ++i) {
      const std::string conv = name + ".conv" + std::to_string(i);
      x = net.add(conv, Conv2d::square(channels << block, 3, 1, 1, true), x);
      x = net.add(conv + ".relu", Relu{}, x);
    }
    x = net.add(name + ".pool", Pool::max(2, 2), x);
  }
  net.add("fc", Linear{5}, x);
  return net;
}

// Returns a network with two outputs: the second is an auxiliary classifier in the middle.
inline Network auxiliary() {
  Network net("auxiliary", {4, 3, 8, 8});
  const LayerId x = net.add("relu", Relu{}, net.add("conv", Conv2d::square(8, 3, 1, 1), net.input()));
  const LayerId middle = net.add("aux.bn", BatchNorm{}, net.add("aux.conv", Conv2d::square(4, 1), x));
  const LayerId aux = net.add("aux.fc", Linear{5}, net.add("aux.relu", Relu{}, middle));
  const LayerId pool = net.add("pool", Pool::global(), net.add("conv2", Conv2d::square(6, 3, 1, 1), x));
  net.set_outputs({net.add("fc", Linear{5}, pool), aux});
  return net;
}

// Returns a network whose layers read all earlier layers, as in DenseNet. A batch norm over a
// concatenation needs the sums of all its inputs. In the last concatenation one input comes from a
// pool, which computes no sums.
inline Network dense() {
  Network net("dense", {4, 3, 6, 5});
  LayerId last =
      net.add("pool", Pool::max(3, 1, 1), net.add("stem", Conv2d::square(6, 3, 1, 1), net.input()));
  for (const std::string name : {"a", "b"}) {
    const LayerId norm = net.add(name + ".relu", Relu{}, net.add(name + ".bn", BatchNorm{}, last));
    last = net.add(name + ".concat", Concat{}, {last, net.add(name, Conv2d::square(4, 3, 1, 1), norm)});
  }
  last = net.add("relu", Relu{}, net.add("bn", BatchNorm{}, last));
  last = net.add("concat", Concat{}, {net.add("average", Pool::average(3, 1, 1), last), last});
  last = net.add("last.bn", BatchNorm{}, last);
  net.add("flatten", Flatten{}, net.add("global", Pool::global(), last));
  return net;
}

// Returns a network that needs most of its memory for the activations that backward reads, so that
// running operations again can save much. With kernel = 1, the second convolution of each block can
// normalise its input as it reads it (fuse_norm_inputs).
inline Network deep(int kernel = 3) {
  Network net("deep", {4, 3, 12, 12});
  LayerId x = net.add("stem", Conv2d::square(8, 3, 1, 1), net.input());
  for (int block = 0; block < 5; ++block) {
    const std::string name = "block" + std::to_string(block);
    const LayerId conv1 = net.add(name + ".conv1", Conv2d::square(8, 3, 1, 1), x);
    const LayerId norm1 = net.add(name + ".bn1", BatchNorm{}, conv1);
    const LayerId relu1 = net.add(name + ".relu1", Relu{}, norm1);
    const LayerId conv2 = net.add(name + ".conv2", Conv2d::square(8, kernel, 1, kernel / 2), relu1);
    const LayerId norm2 = net.add(name + ".bn2", BatchNorm{}, conv2);
    x = net.add(name + ".relu2", Relu{}, net.add(name + ".add", Add{}, {norm2, x}));
  }
  net.add("fc", Linear{5}, net.add("pool", Pool::global(), x));
  return net;
}

}  // namespace convoy::app
