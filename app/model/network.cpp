#include "app/model/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace convoy::app {
namespace {

std::vector<ParameterSpec> named(std::vector<ParameterSpec> specs, const std::string& layer) {
  for (ParameterSpec& spec : specs) {
    spec.key = spec.name;
    spec.name = layer + "." + spec.key;
  }
  return specs;
}

}  // namespace

Network::Network(std::string name, const Shape& input) : name_(std::move(name)) {
  layers_.push_back({"input", Input{input}, {}, input, {}, {}});
}

LayerId Network::add(std::string name, LayerOp op, std::vector<LayerId> inputs) {
  return append({std::move(name), std::move(op), std::move(inputs), {}, {}, {}}, true);
}

LayerId Network::append(Layer layer) { return append(std::move(layer), false); }

LayerId Network::append(Layer layer, bool declare) {
  const auto fail = [&](const std::string& what) {
    throw std::runtime_error(fmt::format("network {}, layer {}: {}", name_, layer.name, what));
  };
  for (const LayerId input : layer.inputs)
    if (input < 0 || input >= std::ssize(layers_))
      fail(fmt::format("reads layer {}, which does not exist", input));
  if (std::ranges::any_of(layers_, [&](const Layer& other) { return other.name == layer.name; }))
    fail("another layer has this name");
  const auto shapes = input_shapes(layer);
  try {
    std::visit([&](const auto& op) { layer.output = op.infer(shapes); }, layer.op);
  } catch (const ShapeError& error) {
    fail(error.what());
  }
  if (declare)
    std::visit(
        [&](const auto& op) {
          layer.parameters = named(op.parameters(shapes), layer.name);
          layer.states = named(op.states(shapes), layer.name);
        },
        layer.op);
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
  for (const Layer& layer : layers_) all.insert(all.end(), layer.parameters.begin(), layer.parameters.end());
  return all;
}

std::int64_t Network::parameter_count() const {
  std::int64_t count = 0;
  for (const Layer& layer : layers_)
    for (const ParameterSpec& spec : layer.parameters) count += spec.parameter_count();
  return count;
}

std::vector<LayerId> Network::outputs() const {
  return outputs_.empty() ? std::vector{static_cast<LayerId>(layers_.size()) - 1} : outputs_;
}

std::vector<bool> layers_needed_for(const Network& network, const std::vector<LayerId>& outputs) {
  std::vector<bool> needed(network.layers().size(), false);
  for (const LayerId output : outputs) needed[static_cast<std::size_t>(output)] = true;
  for (std::size_t id = needed.size(); id-- > 0;)
    if (needed[id])
      for (const LayerId input : network.layers()[id].inputs) needed[static_cast<std::size_t>(input)] = true;
  return needed;
}

Network without_unused(const Network& network) {
  const std::vector<bool> needed = layers_needed_for(network, network.outputs());
  Network result(network.name(), network.shape(network.input()));
  std::vector<LayerId> new_id(needed.size(), 0);
  for (std::size_t id = 1; id < needed.size(); ++id) {
    if (!needed[id]) continue;
    Layer layer = network.layers()[id];
    for (LayerId& input : layer.inputs) input = new_id[static_cast<std::size_t>(input)];
    new_id[id] = result.append(std::move(layer));
  }
  std::vector<LayerId> outputs = network.outputs();
  for (LayerId& output : outputs) output = new_id[static_cast<std::size_t>(output)];
  result.set_outputs(std::move(outputs));
  return result;
}

void Network::reinitialise() {
  for (Layer& layer : layers_)
    for (auto* specs : {&layer.parameters, &layer.states})
      for (ParameterSpec& spec : *specs)
        if (!spec.constant) spec.values = nullptr;
}

ParameterSpec& Network::parameter(LayerId id, std::string_view key) {
  Layer& layer = layers_[static_cast<std::size_t>(id)];
  for (auto* specs : {&layer.parameters, &layer.states})
    if (const auto found = std::ranges::find(*specs, key, &ParameterSpec::key); found != specs->end())
      return *found;
  throw std::logic_error(fmt::format("layer {} has no parameter {}", layer.name, key));
}

}  // namespace convoy::app
