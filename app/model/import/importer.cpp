#include "app/model/import/importer.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/model/import/constants.h"
#include "app/model/import/operations.h"

namespace convoy::app::onnx_import {
namespace {

// The batch size that the import assumes if the file does not fix one.
constexpr std::int64_t kOpenBatch = 2;

kernels::Shape shape_of(const Dims& dims) {
  kernels::Shape shape;
  switch (dims.size()) {
    case 1:
      return {dims[0]};
    case 2:
      return {dims[0], dims[1]};
    case 3:
      return {dims[0], dims[1], dims[2]};
    case 4:
      return {dims[0], dims[1], dims[2], dims[3]};
    default:
      return {};
  }
}

Dims dims_of(const kernels::Shape& shape) {
  Dims dims;
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return dims;
}

// Removes slashes at the front and replaces all others by dots, because checkpoints use the names
// of layers and parameters as paths.
std::string without_slashes(std::string name) {
  name.erase(0, name.find_first_not_of('/'));
  std::ranges::replace(name, '/', '.');
  return name;
}

// Returns the name of the PyTorch module to which a node belongs, for example layer1.0.conv1 for
// "/layer1/layer1.0/conv1/Conv".
std::string module_name(const std::string& node) {
  std::string module;
  std::string last;
  for (std::size_t begin = 1, end = 0; (end = node.find('/', begin)) != std::string::npos; begin = end + 1) {
    const std::string part = node.substr(begin, end - begin);
    if (!last.empty() && part.starts_with(last + "."))
      module += part.substr(last.size());
    else
      module += (module.empty() ? "" : ".") + part;
    last = part;
  }
  return module;
}

bool changes_shape_only(const FileNode& node) {
  for (const char* op : {"Flatten", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Cast"})
    if (node.op == op) return true;
  return false;
}

}  // namespace

Dims Value::dims() const { return constant ? constant->dims : view.dims(); }

Importer::Importer(const FileGraph& graph) : graph_(graph) {
  for (const auto& [name, initialiser] : graph.initialisers) values_[name] = {initialiser, 0, {}};
  find_readers();
  read_input();
}

void Importer::find_readers() {
  for (const FileNode& node : graph_.nodes)
    for (const std::string& input : node.inputs) {
      auto& readers = readers_[input];
      if (node.op == "Shape" && node.domain.empty()) continue;
      if (readers.empty() || readers.back() != &node) readers.push_back(&node);
    }
}

void Importer::read_input() {
  std::vector<FileInput> inputs = graph_.inputs;
  std::erase_if(inputs, [&](const FileInput& input) { return !is_read(input.name); });
  if (inputs.size() != 1)
    throw std::runtime_error(fmt::format("reads {} tensors, expected one: a batch of images", inputs.size()));
  FileInput& input = inputs[0];
  if (input.dims.size() != 4)
    throw std::runtime_error(fmt::format("input {}: found the shape {}, expected images [N, C, H, W]",
                                         input.name, to_string(input.dims)));
  // Some exporters write an open batch as 0.
  if (input.dims[0] <= 0) input.dims[0] = kOpenBatch;
  for (std::size_t axis = 1; axis < 4; ++axis) {
    if (input.dims[axis] == 0)
      throw std::runtime_error(fmt::format("input {}: found the shape {}, expected positive extents",
                                           input.name, to_string(input.dims)));
    if (input.dims[axis] < 0)
      throw std::runtime_error(fmt::format(
          "input {}: its extent {} is dynamic, but only the batch may be: export it for images of one size",
          input.name, axis));
  }
  elements_of(input.dims);
  network_.emplace(graph_.path, shape_of(input.dims));
  values_[input.name] = {std::nullopt, network_->input(), Arrangement(input.dims)};
}

Network Importer::run() {
  // Read all constants first, because the constant of a bias may come after the layer that uses it.
  for (const FileNode& node : graph_.nodes)
    if (node.op == "Constant" || node.op == "Identity") try_constant(node);
  for (const FileNode& node : graph_.nodes)
    if (!done_.contains(&node) && !try_constant(node)) import_node(node);
  std::vector<LayerId> outputs;
  for (const std::string& output : graph_.outputs) outputs.push_back(output_layer(output));
  for (const LayerId output : outputs)
    if (shape(output)[1] != shape(outputs[0])[1] || std::ranges::count(outputs, output) > 1)
      throw std::runtime_error("its outputs are not logits of the same classes");
  network_->set_outputs(std::move(outputs));
  require_own_names();
  return std::move(*network_);
}

// Throws if two parameters or states have the same name, because checkpoints find them by name.
void Importer::require_own_names() const {
  std::set<std::string> names;
  for (const Layer& layer : network_->layers())
    for (const auto* specs : {&layer.parameters, &layer.states})
      for (const ParameterSpec& spec : *specs)
        if (!names.insert(spec.name).second)
          throw std::runtime_error(
              fmt::format("layer {}: another parameter has the name '{}'", layer.name, spec.name));
}

// Returns the layer that makes an output of the file, which must be [N, classes].
LayerId Importer::output_layer(const std::string& name) {
  const FileNode reader{{}, "Flatten", {}, {name}, {}, {}, 0};
  const Value& output = activation(reader, 0);
  const auto fail = [&] {
    throw std::runtime_error(fmt::format("output {}: found the shape {}, expected logits [N, classes]", name,
                                         to_string(output.dims())));
  };
  if (output.layer == network_->input()) fail();
  const Dims dims = output.dims();
  if (dims.size() < 2 || elements_of(dims) != dims[0] * dims[1] || output.view.place_of(0) != 0) fail();
  if (shape(output.layer).size() == 2) return output.layer;
  if (output.view.place_of(1) < 0) fail();
  return add(reader, Flatten{}, {output.layer});
}

bool Importer::try_constant(const FileNode& node) {
  if (node.outputs.size() != 1 || values_.contains(node.outputs[0])) return node.outputs.size() == 1;
  std::vector<const Constant*> inputs;
  for (const std::string& input : node.inputs) {
    const auto found = values_.find(input);
    if (!input.empty() && (found == values_.end() || !found->second.constant)) return false;
    inputs.push_back(input.empty() ? nullptr : &*found->second.constant);
  }
  auto result = evaluate(node, inputs);
  if (result) values_[node.outputs[0]] = {std::move(result), 0, {}};
  return values_.contains(node.outputs[0]);
}

void Importer::import_node(const FileNode& node) {
  const Operation* operation = node.domain.empty() ? find_operation(node.op) : nullptr;
  if (operation == nullptr) refuse(node);
  check_attributes(node, *operation);
  operation->import(*this, node);
}

const Value& Importer::value(const FileNode& node, std::size_t index) const {
  if (!node.has_input(index)) node.fail(fmt::format("lacks its input {}", index));
  const auto found = values_.find(node.inputs[index]);
  if (found == values_.end())
    node.fail(fmt::format("reads '{}', an output that is not supported", node.inputs[index]));
  return found->second;
}

bool Importer::is_constant(const FileNode& node, std::size_t index) const {
  return value(node, index).constant.has_value();
}

const Constant& Importer::constant(const FileNode& node, std::size_t index) const {
  const Value& found = value(node, index);
  if (!found.constant)
    node.fail(fmt::format("its input {} is computed from the images, expected a constant", index));
  return *found.constant;
}

const Constant* Importer::optional_constant(const FileNode& node, std::size_t index) const {
  return node.has_input(index) ? &constant(node, index) : nullptr;
}

Value& Importer::settle(const FileNode& node, std::size_t index) {
  if (value(node, index).constant)
    node.fail(fmt::format("its input {} is a constant, expected an image", index));
  Value& found = values_.at(node.inputs[index]);
  if (found.pad) {
    found.layer = add(node, Pad{*found.pad}, {found.layer});
    found.view = Arrangement(shape(found.layer));
    found.pad.reset();
  }
  if (const int groups = found.view.shuffle_groups(); groups > 0) {
    found.layer = add(node, ChannelShuffle{groups}, {found.layer});
    found.view = Arrangement(shape(found.layer));
  }
  return found;
}

const Value& Importer::activation(const FileNode& node, std::size_t index) { return settle(node, index); }

LayerId Importer::image(const FileNode& node, std::size_t index) {
  const Value& found = settle(node, index);
  if (!found.view.is_plain() || found.view.layer().size() != 4)
    node.fail(fmt::format("its input {} has the shape {}, expected an image [N, C, H, W] in this order",
                          index, to_string(found.dims())));
  return found.layer;
}

Value Importer::unpadded_image(const FileNode& node, std::size_t index) {
  if (!is_constant(node, index) && value(node, index).pad) return value(node, index);
  image(node, index);
  return value(node, index);
}

Dims Importer::shape(LayerId layer) const { return dims_of(network_->shape(layer)); }

std::string Importer::layer_name(const FileNode& node, const Constant* weight) const {
  constexpr std::string_view kWeight = ".weight";
  std::string name;
  if (weight != nullptr && weight->name.ends_with(kWeight))
    name = without_slashes(weight->name.substr(0, weight->name.size() - kWeight.size()));
  if (name.empty()) name = node.name.starts_with('/') ? module_name(node.name) : without_slashes(node.name);
  if (name.empty()) {
    name = node.op;
    std::ranges::transform(name, name.begin(),
                           [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  }
  std::string unique = name;
  for (int i = 2; layer_names_.contains(unique) || unique == "input"; ++i)
    unique = fmt::format("{}_{}", name, i);
  return unique;
}

LayerId Importer::add(const FileNode& node, LayerOp op, std::vector<LayerId> inputs, const Constant* weight) {
  const std::string name = layer_name(node, weight);
  try {
    const LayerId layer = network_->add(name, std::move(op), std::move(inputs));
    elements_of(shape(layer));
    layer_names_.insert(name);
    return layer;
  } catch (const std::exception& error) {
    const std::string what = error.what();
    const std::string prefix = fmt::format("network {}, layer {}: ", graph_.path, name);
    node.fail(what.starts_with(prefix) ? what.substr(prefix.size()) : what);
  }
}

void Importer::bind(const FileNode& node, LayerId layer, std::string_view key, const Constant& values) {
  ParameterSpec& spec = network_->parameter(layer, key);
  if (values.is_integer || values.size() != spec.shape.elements())
    node.fail(fmt::format("its {} has the shape {}, expected {}", key, to_string(values.dims),
                          spec.shape.to_string()));
  if (const std::string fault = fault_in(spec, *values.reals); !fault.empty())
    node.fail(fmt::format("its {}{}: {}", key, values.name.empty() ? "" : fmt::format(" '{}'", values.name),
                          fault));
  if (!values.name.empty()) {
    const auto [owner, is_new] = claimed_.emplace(values.name, node.label());
    if (!is_new)
      node.fail(fmt::format("shares its {} '{}' with {}; weights of two layers cannot be one", key,
                            values.name, owner->second));
    spec.name = without_slashes(values.name);
  }
  const Dims& stored = values.name.empty() ? values.dims : values.stored;
  if (dims_of(spec.shape) != stored) spec.file_shape = shape_of(stored);
  spec.values = values.reals;
}

void Importer::keep(LayerId layer, std::string_view key, double number) {
  ParameterSpec& spec = network_->parameter(layer, key);
  const std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()),
                                  static_cast<float>(number));
  spec.values = std::make_shared<const std::vector<float>>(values);
  spec.constant = true;
}

void Importer::give(const FileNode& node, Value value, std::size_t output) {
  if (output < node.outputs.size() && !node.outputs[output].empty())
    values_[node.outputs[output]] = std::move(value);
}

void Importer::give(const FileNode& node, LayerId layer, std::size_t output) {
  give(node, {std::nullopt, layer, Arrangement(shape(layer))}, output);
}

LayerId Importer::give_elementwise(const FileNode& node, LayerOp op, const Constant* weight) {
  const Value input = activation(node, 0);
  const LayerId layer = add(node, std::move(op), {input.layer}, weight);
  give(node, {std::nullopt, layer, input.view});
  return layer;
}

const FileNode* Importer::only_reader(const std::string& value) const {
  const auto found = readers_.find(value);
  if (found == readers_.end() || found->second.size() != 1 || is_output(value)) return nullptr;
  return found->second[0];
}

bool Importer::is_output(const std::string& value) const {
  return std::ranges::find(graph_.outputs, value) != graph_.outputs.end();
}

bool Importer::is_read(const std::string& value) const {
  return readers_.contains(value) || is_output(value);
}

const Constant* Importer::take_bias(const FileNode& node, int place, int rank, std::int64_t channels) {
  const FileNode* add = only_reader(node.outputs[0]);
  if (add == nullptr || add->op != "Add" || !add->domain.empty() || add->inputs.size() != 2) return nullptr;
  const std::string& other = add->inputs[add->inputs[0] == node.outputs[0] ? 1 : 0];
  const auto found = values_.find(other);
  if (found == values_.end() || !found->second.constant) return nullptr;
  const Constant& bias = *found->second.constant;
  Dims dims(static_cast<std::size_t>(rank), 0);
  dims[static_cast<std::size_t>(place)] = channels;
  if (bias.size() != channels || !is_per_channel(bias, dims, place) || is_computed_number(bias))
    return nullptr;
  bias_of_[&node] = add;
  done_.insert(add);
  return &bias;
}

void Importer::give_with_bias(const FileNode& node, Value value) {
  const auto found = bias_of_.find(&node);
  give(node, value);  // later nodes may read the shape of this value
  if (found != bias_of_.end()) give(*found->second, std::move(value));
}

bool Importer::is_last(const FileNode& node) const {
  const FileNode* at = &node;
  while (at != nullptr && !is_output(at->outputs[0])) {
    at = only_reader(at->outputs[0]);
    if (at != nullptr && !changes_shape_only(*at)) return false;
  }
  return at != nullptr;
}

bool is_computed_number(const Constant& constant) {
  return constant.size() == 1 &&
         (constant.name.empty() || constant.name.find_first_of("/:") != std::string::npos);
}

bool is_per_channel(const Constant& constant, const Dims& dims, int place) {
  if (constant.is_integer || constant.dims.size() > dims.size()) return false;
  const std::size_t offset = dims.size() - constant.dims.size();
  for (std::size_t i = 0; i < constant.dims.size(); ++i) {
    const bool channels = static_cast<int>(i + offset) == place;
    if (constant.dims[i] != 1 && (!channels || constant.dims[i] != dims[i + offset])) return false;
  }
  return true;
}

}  // namespace convoy::app::onnx_import
