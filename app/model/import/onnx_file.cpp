#include "app/model/import/onnx_file.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <onnx/onnx_pb.h>

#include <fstream>
#include <limits>
#include <set>

#include "app/model/import/onnx_tensor.h"

namespace convoy::app::onnx_import {
namespace {

constexpr std::int64_t kOldestOpset = 7;

std::vector<std::string> list(const google::protobuf::RepeatedPtrField<std::string>& field) {
  return {field.begin(), field.end()};
}

Attribute attribute_of(const onnx::AttributeProto& attribute, const std::filesystem::path& folder) {
  switch (attribute.type()) {
    case onnx::AttributeProto::INT:
      return attribute.i();
    case onnx::AttributeProto::FLOAT:
      return attribute.f();
    case onnx::AttributeProto::STRING:
      return attribute.s();
    case onnx::AttributeProto::INTS:
      return std::vector<std::int64_t>(attribute.ints().begin(), attribute.ints().end());
    case onnx::AttributeProto::FLOATS:
      return std::vector<float>(attribute.floats().begin(), attribute.floats().end());
    case onnx::AttributeProto::TENSOR:
      return read_tensor(attribute.t(), folder);
    default:
      return std::monostate{};
  }
}

FileNode node_of(const onnx::NodeProto& proto, std::size_t index, const std::filesystem::path& folder) {
  FileNode node{proto.name(), proto.op_type(), proto.domain(), list(proto.input()), list(proto.output()), {},
                index};
  if (node.domain == "ai.onnx") node.domain.clear();
  for (const onnx::AttributeProto& attribute : proto.attribute()) {
    try {
      node.attributes[attribute.name()] = attribute_of(attribute, folder);
    } catch (const std::runtime_error& error) {
      node.fail(fmt::format("attribute {}: {}", attribute.name(), error.what()));
    }
  }
  return node;
}

FileInput input_of(const onnx::ValueInfoProto& proto) {
  FileInput input{proto.name(), {}};
  for (const auto& dim : proto.type().tensor_type().shape().dim())
    input.dims.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1);
  return input;
}

// Checks that every value is computed only once, and before it is read.
void check_order(const FileGraph& graph) {
  std::set<std::string> known;
  for (const auto& [name, value] : graph.initialisers) known.insert(name);
  for (const FileInput& input : graph.inputs) known.insert(input.name);
  for (const FileNode& node : graph.nodes) {
    for (const std::string& input : node.inputs)
      if (!input.empty() && !known.contains(input))
        node.fail(fmt::format("reads '{}', which nothing before it makes", input));
    for (const std::string& output : node.outputs)
      if (!output.empty() && !known.insert(output).second)
        node.fail(fmt::format("makes '{}', which exists already", output));
  }
  for (const std::string& output : graph.outputs)
    if (!known.contains(output))
      throw std::runtime_error(fmt::format("output '{}' is made by no node", output));
}

std::int64_t opset_of(const onnx::ModelProto& model) {
  std::int64_t opset = 0;
  for (const onnx::OperatorSetIdProto& set : model.opset_import())
    if (set.domain().empty() || set.domain() == "ai.onnx") opset = set.version();
  if (opset < kOldestOpset)
    throw std::runtime_error(fmt::format("found opset {}, expected {} or a newer one", opset, kOldestOpset));
  return opset;
}

FileGraph graph_of(const onnx::ModelProto& model, const std::filesystem::path& folder) {
  FileGraph graph;
  graph.opset = opset_of(model);
  const onnx::GraphProto& proto = model.graph();
  if (proto.sparse_initializer_size() > 0)
    throw std::runtime_error("has sparse initialisers, which are not supported");
  for (const onnx::TensorProto& tensor : proto.initializer())
    if (!graph.initialisers.emplace(tensor.name(), read_tensor(tensor, folder)).second)
      throw std::runtime_error(fmt::format("has two initialisers of the name '{}'", tensor.name()));
  for (const onnx::NodeProto& node : proto.node())
    graph.nodes.push_back(node_of(node, graph.nodes.size(), folder));
  for (const onnx::ValueInfoProto& input : proto.input())
    if (!graph.initialisers.contains(input.name())) graph.inputs.push_back(input_of(input));
  for (const onnx::ValueInfoProto& output : proto.output()) graph.outputs.push_back(output.name());
  if (model.producer_name() == "convoy")
    for (const onnx::StringStringEntryProto& entry : model.metadata_props())
      graph.metadata[entry.key()] = entry.value();
  if (graph.nodes.empty() || graph.outputs.empty()) throw std::runtime_error("holds no network");
  check_order(graph);
  return graph;
}

template <typename T>
const T* find(const FileNode& node, const std::string& name, const char* kind) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return nullptr;
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) node.fail(fmt::format("attribute {} is of another type, expected {}", name, kind));
  return value;
}

}  // namespace

std::int64_t elements_of(const Dims& dims) {
  std::int64_t count = 1;
  for (const std::int64_t extent : dims) {
    if (extent < 0)
      throw std::runtime_error(fmt::format("found the shape {}, expected positive extents", to_string(dims)));
    if (extent > 0 && count > kMostElements / extent)
      throw std::runtime_error(
          fmt::format("found the shape {}, expected at most {} elements", to_string(dims), kMostElements));
    count *= extent;
  }
  return count;
}

std::string to_string(const Dims& dims) {
  return dims.empty() ? "scalar" : fmt::format("{}", fmt::join(dims, "x"));
}

Constant Constant::of_integers(Dims dims, std::vector<std::int64_t> values) {
  return {std::move(dims), true, std::move(values), nullptr, {}, {}};
}

Constant Constant::of_reals(Dims dims, std::vector<float> values) {
  return {std::move(dims), false, {}, std::make_shared<const std::vector<float>>(std::move(values)), {}, {}};
}

std::string FileNode::label() const {
  const std::string type = domain.empty() ? op : domain + "." + op;
  return name.empty() ? fmt::format("node {} ({})", index, type) : fmt::format("node {} ({})", name, type);
}

void FileNode::fail(const std::string& message) const {
  throw std::runtime_error(fmt::format("{}: {}", label(), message));
}

std::int64_t FileNode::integer(const std::string& name, std::int64_t otherwise) const {
  const auto* value = find<std::int64_t>(*this, name, "an integer");
  return value == nullptr ? otherwise : *value;
}

double FileNode::real(const std::string& name, double otherwise) const {
  const auto* value = find<float>(*this, name, "a real number");
  return value == nullptr ? otherwise : *value;
}

std::string FileNode::text(const std::string& name, const std::string& otherwise) const {
  const auto* value = find<std::string>(*this, name, "a text");
  return value == nullptr ? otherwise : *value;
}

std::optional<std::vector<std::int64_t>> FileNode::integers(const std::string& name) const {
  const auto* value = find<std::vector<std::int64_t>>(*this, name, "integers");
  return value == nullptr ? std::nullopt : std::optional(*value);
}

FileGraph parse_onnx(std::span<const std::uint8_t> bytes, const std::string& path,
                     const std::filesystem::path& folder) {
  try {
    if (bytes.size() > std::numeric_limits<int>::max())
      throw std::runtime_error("has more than 2 GiB, expected external data for so many weights");
    onnx::ModelProto model;
    google::protobuf::io::CodedInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
    if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage() || !model.has_graph())
      throw std::runtime_error("is not an ONNX file, or a damaged one");
    FileGraph graph = graph_of(model, folder);
    graph.path = path;
    return graph;
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", path, error.what()));
  }
}

FileGraph read_onnx_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0 || !std::filesystem::is_regular_file(path))
    throw std::runtime_error(fmt::format("{}: cannot open the file", path.string()));
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  file.seekg(0);
  if (size > 0 && !file.read(reinterpret_cast<char*>(bytes.data()), size))
    throw std::runtime_error(fmt::format("{}: cannot read the file", path.string()));
  return parse_onnx(bytes, path.string(), path.parent_path());
}

}  // namespace convoy::app::onnx_import
