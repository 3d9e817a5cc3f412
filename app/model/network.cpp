#include "app/model/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace convoy::app {

Network::Network(std::string name, const Shape& input) : name_(std::move(name)) {
  layers_.push_back({"input", Input{input}, {}, input});
}

LayerId Network::add(std::string name, LayerOp op, std::vector<LayerId> inputs) {
  const auto fail = [&](const std::string& what) {
    throw std::runtime_error(fmt::format("network {}, layer {}: {}", name_, name, what));
  };
  for (const LayerId input : inputs)
    if (input < 0 || input >= std::ssize(layers_))
      fail(fmt::format("reads layer {}, which does not exist", input));
  if (std::ranges::any_of(layers_, [&](const Layer& layer) { return layer.name == name; }))
    fail("another layer has this name");
  Layer layer{std::move(name), std::move(op), std::move(inputs), {}};
  const auto shapes = input_shapes(layer);
  try {
    layer.output = std::visit([&](const auto& attributes) { return attributes.infer(shapes); }, layer.op);
  } catch (const ShapeError& error) {
    throw std::runtime_error(fmt::format("network {}, layer {}: {}", name_, layer.name, error.what()));
  }
  layers_.push_back(std::move(layer));
  return static_cast<LayerId>(layers_.size()) - 1;
}

std::vector<Shape> Network::input_shapes(const Layer& layer) const {
  std::vector<Shape> shapes;
  for (const LayerId input : layer.inputs) shapes.push_back(shape(input));
  return shapes;
}

std::vector<ParameterSpec> Network::parameters() const {
  std::vector<ParameterSpec> all;
  for (const Layer& layer : layers_) {
    const auto shapes = input_shapes(layer);
    for (ParameterSpec& spec : std::visit([&](const auto& op) { return op.parameters(shapes); }, layer.op)) {
      spec.name = layer.name + "." + spec.name;
      all.push_back(std::move(spec));
    }
  }
  return all;
}

std::int64_t Network::parameter_count() const {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : parameters()) count += spec.shape.elements();
  return count;
}

}  // namespace convoy::app
