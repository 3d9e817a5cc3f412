// A network in the making. Most layers read the one before them, so a network reads as the list of its layers.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "app/model/network.h"

namespace convoy::app::zoo {

class Builder {
 public:
  Builder(std::string name, const Shape& input) : network_(std::move(name), input) {}

  // Appends a layer that reads the last one; or the given ones.
  Builder& add(std::string name, LayerOp op) { return add(std::move(name), std::move(op), {last_}); }
  Builder& add(std::string name, LayerOp op, std::vector<LayerId> inputs);
  // The next layer reads this one: where a branch starts.
  Builder& from(LayerId layer);

  LayerId last() const { return last_; }
  const Shape& shape() const { return network_.shape(last_); }  // of the last layer
  const std::string& name() const { return network_.name(); }
  Network take() { return std::move(network_); }

 private:
  Network network_;
  LayerId last_ = 0;
};

// `conv` with weights and bias uniform in ±1/sqrt(fan-in), `channels` being those of its input.
Conv2d with_uniform_weights(Conv2d conv, std::int64_t channels);

// Average pooling to extent × extent: no layer where the image has that size already, a plain pool where it is a
// multiple. Other sizes are an error that names the network's working input sizes; `extent_of` is the image's side
// here for a square network input of a given side.
void add_adaptive_average(Builder& net, const std::string& name, std::int64_t extent,
                          const std::function<std::int64_t(std::int64_t)>& extent_of);

}  // namespace convoy::app::zoo
