// Builds a network from a list of layers, most of which read the one before them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/model/network.h"

namespace convoy::app::zoo {

class Builder {
 public:
  Builder(std::string name, const Shape& input) : network_(std::move(name), input) {}

  // Both append a layer. It reads the last one, or the given ones.
  Builder& add(std::string name, LayerOp op) { return add(std::move(name), std::move(op), {last_}); }
  Builder& add(std::string name, LayerOp op, std::vector<LayerId> inputs);
  // Starts a branch: the next layer reads this one.
  Builder& from(LayerId layer);

  // Returns a parameter of the last layer, to name it as a model file does.
  ParameterSpec& parameter(std::string_view key) { return network_.parameter(last_, key); }

  LayerId last() const { return last_; }
  // Returns the shape of the last layer.
  const Shape& shape() const { return network_.shape(last_); }
  const std::string& name() const { return network_.name(); }
  Network take() { return std::move(network_); }

 private:
  Network network_;
  LayerId last_ = 0;
};

// Returns `conv` with weights and bias uniform in ±1/sqrt(fan-in). `channels` are those of its
// input.
Conv2d with_uniform_weights(Conv2d conv, std::int64_t channels);

// Adds average pooling to extent × extent: no layer if the image has that size already, a plain
// pool if its size is a multiple. Else it throws std::runtime_error, which names the input sizes
// that work. `extent_of` gives the image's side here for a square network input of a given side.
void add_adaptive_average(Builder& net, const std::string& name, std::int64_t extent,
                          const std::function<std::int64_t(std::int64_t)>& extent_of);

}  // namespace convoy::app::zoo
