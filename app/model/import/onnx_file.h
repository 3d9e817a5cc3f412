// Reads an ONNX file into plain values, with ONNX's protobuf classes. Protobuf ignores fields that
// it does not know, so files of newer versions can be read, too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace convoy::app::onnx_import {

using Dims = std::vector<std::int64_t>;  // extents; empty for a scalar

// The largest number of elements that is accepted for a tensor.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

// Returns the product of the extents. Throws std::runtime_error if an extent is negative or the
// product exceeds kMostElements.
std::int64_t elements_of(const Dims& dims);
std::string to_string(const Dims& dims);  // for example "2x3x32x32" or "scalar"

// A constant tensor in row-major order. It holds either integers (also for booleans) or real
// numbers, which are converted to float32.
struct Constant {
  Dims dims;
  bool is_integer = false;
  std::vector<std::int64_t> integers;
  std::shared_ptr<const std::vector<float>> reals;
  std::string name;  // of the initialiser; empty if the tensor was computed
  // The shape of the tensor before any Reshape. A weight keeps this shape in exported files.
  Dims stored;

  std::int64_t size() const {
    return is_integer ? std::ssize(integers) : static_cast<std::int64_t>(reals->size());
  }
  double at(std::int64_t index) const {
    const auto i = static_cast<std::size_t>(index);
    return is_integer ? static_cast<double>(integers[i]) : (*reals)[i];
  }
  static Constant of_integers(Dims dims, std::vector<std::int64_t> values);
  static Constant of_reals(Dims dims, std::vector<float> values);
};

// An attribute of a node. std::monostate stands for all other kinds, such as a graph.
using Attribute = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>,
                               std::vector<float>, Constant, std::monostate>;

struct FileNode {
  std::string name, op, domain;  // `domain` is empty for ONNX's own operations
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Attribute> attributes;
  std::size_t index = 0;  // index in the file

  // Returns "node NAME (OP)", or for example "node 17 (OP)" if the node has no name.
  std::string label() const;
  bool has_input(std::size_t index) const { return index < inputs.size() && !inputs[index].empty(); }
  // Throws std::runtime_error whose message starts with label().
  [[noreturn]] void fail(const std::string& message) const;

  // Each returns the attribute `name`. If it is absent, integers() returns nothing, and the others
  // return `otherwise`. Fails if the attribute has another type.
  std::int64_t integer(const std::string& name, std::int64_t otherwise) const;
  double real(const std::string& name, double otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  std::optional<std::vector<std::int64_t>> integers(const std::string& name) const;
};

struct FileInput {
  std::string name;
  Dims dims;  // -1 for an extent that the file does not fix
};

struct FileGraph {
  std::string path;
  std::int64_t opset = 0;
  std::vector<FileNode> nodes;  // each node comes after the nodes whose outputs it reads
  std::map<std::string, Constant> initialisers;
  std::vector<FileInput> inputs;  // the inputs that are not initialisers
  std::vector<std::string> outputs;
  std::map<std::string, std::string> metadata;  // empty unless `convoy export` wrote the file
};

// Reads an ONNX file, and external data from files in the same folder. Throws std::runtime_error in
// one line that names the file.
FileGraph read_onnx_file(const std::filesystem::path& path);

// Parses the bytes of an ONNX file. `path` is its name in messages. External data are in `folder`.
FileGraph parse_onnx(std::span<const std::uint8_t> bytes, const std::string& path,
                     const std::filesystem::path& folder);

}  // namespace convoy::app::onnx_import
