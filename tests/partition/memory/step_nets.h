// Makes training steps of small networks for the tests of memory planners.
#pragma once

#include <map>
#include <vector>

#include "partition/memory/step_model.h"

namespace convoy::partition {

// Builds a training step from forward operations. For each input of a forward operation there is a
// backward operation. It reads this input and the gradient of the forward operation's output.
class Net {
 public:
  int op(double ms, std::int64_t bytes, std::vector<int> inputs) {
    const int output = tensor(bytes);
    model_.operations.push_back({ms, 0, inputs, {output}, {}, {output}, false});
    return output;
  }
  StepModel step() {
    const auto forward = model_.operations;
    const int probabilities = tensor(1);
    model_.operations.push_back({1, 0, forward.back().outputs, {probabilities}, {}, {}, false});
    std::map<int, int> gradient{{forward.back().outputs[0], probabilities}};
    for (std::size_t i = forward.size(); i-- > 0;) {
      const StepOperation& of = forward[i];
      for (const int input : of.inputs) {
        std::vector<int> reads{gradient.at(of.outputs[0]), input};
        const auto other = gradient.find(input);
        if (other != gradient.end()) reads.push_back(other->second);
        const int made = tensor(model_.tensor_bytes[input]);
        model_.operations.push_back({of.ms, 0, reads, {made}, {}, {}, true});
        gradient[input] = made;
      }
    }
    return model_;
  }

 private:
  int tensor(std::int64_t bytes) {
    model_.tensor_bytes.push_back(bytes);
    return static_cast<int>(std::ssize(model_.tensor_bytes)) - 1;
  }
  StepModel model_;
};

// Returns a step with bottleneck blocks of four widths, as in a residual network.
inline StepModel residual_step(int blocks) {
  Net net;
  int x = net.op(4, 512, {});
  for (int block = 0; block < blocks; ++block) {
    const std::int64_t width = 256 >> (4 * block / blocks);
    int y = x;
    for (const std::int64_t channels : {width / 4, width / 4, width}) {
      y = net.op(2, channels, {y});
      y = net.op(1, channels, {y});
    }
    x = net.op(1, width, {y, x});
  }
  net.op(1, 1, {x});
  return net.step();
}

// Returns a step with dense blocks, in which a layer reads all layers before it.
inline StepModel dense_step(int blocks, int layers) {
  Net net;
  int x = net.op(4, 256, {});
  for (int block = 0; block < blocks; ++block) {
    std::vector<int> parts{x};
    for (int layer = 0; layer < layers; ++layer) {
      const int all = net.op(1, 64 + 16 * layer, parts);
      const int normed = net.op(1, 64 + 16 * layer, {all});
      const int narrow = net.op(2, 64, {normed});
      parts.push_back(net.op(2, 16, {narrow}));
    }
    x = net.op(1, 64 + 8 * layers, {net.op(1, 64 + 16 * layers, parts)});
  }
  net.op(1, 1, {x});
  return net.step();
}

inline double all_ms(const StepModel& model) {
  double ms = 0;
  for (const StepOperation& operation : model.operations) ms += operation.ms;
  return ms;
}

}  // namespace convoy::partition
