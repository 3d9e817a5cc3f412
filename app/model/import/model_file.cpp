#include "app/model/import/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/model/import/importer.h"
#include "app/model/import/operations.h"
#include "app/model/import/patterns.h"
#include "app/model/import/structure.h"
#include "app/model/weights/weights.h"

namespace convoy::app {
namespace {

using onnx_import::FileGraph;
using onnx_import::FileNode;

// Returns whether an exporter has folded at least some batch norms into convolutions. `convoy
// export` says so in the metadata. With other exporters, a folded convolution has a weight named
// "onnx::Conv_…", or it has a weight named M.weight and a bias that is not named M.bias.
bool looks_folded(const FileGraph& graph) {
  constexpr std::string_view kWeight = ".weight";
  bool folded = graph.metadata.contains(std::string(kFoldedBatchNorms));
  for (const FileNode& node : graph.nodes) {
    if (node.op != "Conv" || !node.has_input(2)) continue;
    const std::string &weight = node.inputs[1], &bias = node.inputs[2];
    const bool of_module = weight.ends_with(kWeight);
    const std::string own_bias =
        of_module ? weight.substr(0, weight.size() - kWeight.size()) + ".bias" : bias;
    folded = folded || weight.starts_with("onnx::Conv_") || bias != own_bias;
  }
  return folded;
}

Network import_graph(FileGraph graph) {
  onnx_import::recognise_patterns(graph);
  onnx_import::refuse_foreign(graph);
  onnx_import::Importer importer(graph);
  Network network = importer.run();
  for (const std::string& note : importer.notes()) network.note(note);
  return network;
}

// Imports all outputs. If that fails, imports only the first, because the others may not be
// classifiers.
Network import_outputs(FileGraph graph) {
  const std::vector<std::string> outputs = graph.outputs;
  if (outputs.size() == 1) return import_graph(std::move(graph));
  try {
    Network network = import_graph(graph);
    network.note(fmt::format("of its outputs {} only the first is used unless --loss-weights is given",
                             fmt::join(outputs, ", ")));
    return network;
  } catch (const std::runtime_error& error) {
    graph.outputs = {outputs[0]};
    Network network = import_graph(std::move(graph));
    network.note(fmt::format("of its {} outputs only the first, {}, is taken; the others: {}", outputs.size(),
                             outputs[0], error.what()));
    return network;
  }
}

Network network_of(FileGraph graph) {
  try {
    std::string structure = onnx_import::structure_of(graph);
    Network network = import_outputs(graph);
    network.set_file_structure(std::move(structure));
    return network;
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", graph.path, error.what()));
  }
}

bool has_weights(const Layer& layer) {
  return std::holds_alternative<Linear>(layer.op) || std::holds_alternative<Conv2d>(layer.op);
}

// Returns the last linear layer or convolution before an output. This layer computes the logits,
// because only layers without parameters may follow it. Returns -1 if there is no such layer.
LayerId head_of(const Network& network, LayerId output) {
  for (LayerId at = output; at > 0;) {
    const Layer& layer = network.layers()[static_cast<std::size_t>(at)];
    if (has_weights(layer)) return at;
    if (layer.inputs.size() != 1 || !layer.parameters.empty()) return -1;
    at = layer.inputs[0];
  }
  return -1;
}

// Adds a layer with `classes` outputs in place of `head`. Its parameters have the old names but new
// values.
void add_head(Network& network, const Layer& head, int classes) {
  LayerOp op = head.op;
  if (auto* linear = std::get_if<Linear>(&op))
    linear->outputs = classes;
  else
    std::get<Conv2d>(op).filters = classes;
  const LayerId id = network.add(head.name, std::move(op), head.inputs);
  for (const ParameterSpec& old : head.parameters) {
    ParameterSpec& spec = network.parameter(id, old.key);
    spec.name = old.name;
    if (old.file_shape.rank() == 2) spec.file_shape = {classes, old.file_shape[1]};
  }
}

// Adapts the weights of a convolution that reads the images. The file is for images with `channels`
// channels. If the network's images have another number of channels, the weights are summed or
// repeated over the channels (adapt_channels()).
void adapt_first(Network& network, LayerId id, std::int64_t channels) {
  const Layer layer = network.layers()[static_cast<std::size_t>(id)];
  const auto* conv = std::get_if<Conv2d>(&layer.op);
  const std::int64_t from = channels, to = network.shape(network.input())[1];
  if (from == to || conv == nullptr || conv->groups != 1 || layer.parameters[0].shape[1] != from ||
      network.shape(layer.inputs[0])[1] != to)
    return;
  ParameterSpec& weight = network.parameter(id, "weight");
  weight.shape = {weight.shape[0], to, weight.shape[2], weight.shape[3]};
  if (weight.file_shape.rank() > 0)
    weight.file_shape = weight.file_shape.rank() == 2 ? Shape{weight.shape[0], to} : weight.shape;
  if (!weight.values) return;
  weight.values = std::make_shared<const std::vector<float>>(
      adapt_channels(*weight.values, from, to, weight.shape[2] * weight.shape[3]));
  network.note(fmt::format("{} for {} {} {} those of the file's {}", weight.name, to,
                           to == 1 ? "channel" : "channels", to == 1 ? "sums" : "repeats", from));
}

// Throws unless the layer's parameters have the shapes that its inputs require.
void require_shapes(const Network& network, const Layer& layer, const Shape& image) {
  const auto inputs = network.input_shapes(layer);
  const auto expected = std::visit([&](const auto& op) { return op.parameters(inputs); }, layer.op);
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (expected[i].shape != layer.parameters[i].shape)
      throw std::runtime_error(fmt::format(
          "{}: layer {}: its {} has the shape {}, but for these images it would be {}; the file is for "
          "images of {}",
          network.name(), layer.name, layer.parameters[i].key, layer.parameters[i].shape.to_string(),
          expected[i].shape.to_string(), image.to_string()));
}

}  // namespace

bool is_model_file(std::string_view name) { return name.ends_with(".onnx"); }

ModelFile::ModelFile(const std::string& path) : ModelFile(onnx_import::read_onnx_file(path)) {}

ModelFile::ModelFile(FileGraph graph)
    : metadata_(graph.metadata), folded_(looks_folded(graph)), network_(network_of(std::move(graph))) {}

void ModelFile::require_trainable() const {
  if (!folded_) return;
  if (metadata_.contains(std::string(kFoldedBatchNorms)))
    throw std::runtime_error(
        fmt::format("{}: its batch norms were folded into convolutions, so they cannot be trained; export "
                    "with `convoy export` without --fold-batch-norm",
                    network_.name()));
  throw std::runtime_error(fmt::format(
      "{}: batch norms were folded into its convolutions at export, so they cannot be trained; export with "
      "torch.onnx.export(model, images, file, training=torch.onnx.TrainingMode.TRAINING, "
      "do_constant_folding=False), from PyTorch 2.9 on also with dynamo=False",
      network_.name()));
}

Shape ModelFile::image() const {
  const Shape& input = network_.shape(network_.input());
  return {input[1], input[2], input[3]};
}

int ModelFile::classes() const { return static_cast<int>(network_.shape(network_.outputs()[0])[1]); }

Network ModelFile::network(const Shape& input, int classes) const {
  std::vector<LayerId> heads;
  for (const LayerId output : network_.outputs())
    if (classes != this->classes()) heads.push_back(head_of(network_, output));
  if (std::ranges::find(heads, -1) != heads.end())
    throw std::runtime_error(
        fmt::format("{}: found {} classes, but its network is for {} and does not end in a layer that can be "
                    "drawn anew",
                    network_.name(), classes, this->classes()));
  if (input.rank() != 4)
    throw std::runtime_error(
        fmt::format("{}: its input is {}, expected images [N, C, H, W]", network_.name(), input.to_string()));
  Network network(network_.name(), input);
  for (const std::string& note : network_.notes()) network.note(note);
  network.set_file_structure(network_.file_structure());
  for (LayerId id = 1; id < std::ssize(network_.layers()); ++id) {
    const Layer& layer = network_.layers()[static_cast<std::size_t>(id)];
    if (std::ranges::find(heads, id) != heads.end()) {
      add_head(network, layer, classes);
      network.note(fmt::format("layer {} is drawn anew unless --init has it: it had {} classes, now {}",
                               layer.name, this->classes(), classes));
    } else {
      const LayerId added = network.append(layer);
      adapt_first(network, added, image()[0]);
      require_shapes(network, network.layers()[static_cast<std::size_t>(added)], image());
    }
  }
  network.set_outputs(network_.outputs());
  return network;
}

}  // namespace convoy::app
