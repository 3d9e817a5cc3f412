// Builds a network from a list of layers. Most layers read the layer before them.
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

  // Both overloads append a layer. It reads the last layer, or the layers `inputs`.
  Builder& add(std::string name, LayerOp op) { return add(std::move(name), std::move(op), {last_}); }
  Builder& add(std::string name, LayerOp op, std::vector<LayerId> inputs);
  // Starts a branch, whose first layer reads `layer`.
  Builder& from(LayerId layer);

  // Returns a parameter of the last layer, for example to set its name in model files.
  ParameterSpec& parameter(std::string_view key) { return network_.parameter(last_, key); }

  LayerId last() const { return last_; }
  // Returns the output shape of the last layer.
  const Shape& shape() const { return network_.shape(last_); }
  const std::string& name() const { return network_.name(); }
  Network take() { return std::move(network_); }

 private:
  Network network_;
  LayerId last_ = 0;
};

// Returns `conv` with weights and bias uniform in ±1/sqrt(fan-in). `channels` is the number of
// input channels.
Conv2d with_uniform_weights(Conv2d conv, std::int64_t channels);

// Adds average pooling to extent × extent pixels. Adds no layer if the image already has this size.
// If the image's size is no multiple of it, throws std::runtime_error that says which input images
// work. `extent_of` maps the side of a square input image to the side of the image at this layer.
void add_adaptive_average(Builder& net, const std::string& name, std::int64_t extent,
                          const std::function<std::int64_t(std::int64_t)>& extent_of);

}  // namespace convoy::app::zoo
