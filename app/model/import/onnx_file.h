// An ONNX file as plain values. ONNX's protobuf classes read it; they pass over fields that they do
// not know, so files of newer versions open too.
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

using Dims = std::vector<std::int64_t>;  // empty for a scalar

inline constexpr std::int64_t kMostElements = std::int64_t{1} << 40;  // of one tensor

// Returns the product. Throws std::runtime_error for negative extents or more than kMostElements.
std::int64_t elements_of(const Dims& dims);
std::string to_string(const Dims& dims);  // "2x3x32x32", "scalar"

// A constant tensor in row-major order: of integers (booleans too) or of reals, which become
// float32.
struct Constant {
  Dims dims;
  bool is_integer = false;
  std::vector<std::int64_t> integers;
  std::shared_ptr<const std::vector<float>> reals;
  std::string name;  // that of the initialiser; empty if it was computed
  Dims stored;       // the initialiser's dims for the same order of elements; else empty

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

using Attribute = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>,
                               std::vector<float>, Constant, std::monostate>;  // monostate: a graph or so

struct FileNode {
  std::string name, op, domain;  // the domain is empty for ONNX's own operations
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Attribute> attributes;
  std::size_t index = 0;  // in the file

  // Returns "node NAME (OP)", or "node 17 (OP)" if it has no name.
  std::string label() const;
  bool has_input(std::size_t index) const { return index < inputs.size() && !inputs[index].empty(); }
  // Throws std::runtime_error that starts with label().
  [[noreturn]] void fail(const std::string& message) const;

  // Return the attribute or what stands in for it. Fail if it has another type.
  std::int64_t integer(const std::string& name, std::int64_t otherwise) const;
  double real(const std::string& name, double otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  std::optional<std::vector<std::int64_t>> integers(const std::string& name) const;
};

struct FileInput {
  std::string name;
  Dims dims;  // -1 if the file leaves an extent open
};

struct FileGraph {
  std::string path;
  std::int64_t opset = 0;
  std::vector<FileNode> nodes;  // each after those whose outputs it reads
  std::map<std::string, Constant> initialisers;
  std::vector<FileInput> inputs;  // those that are not initialisers
  std::vector<std::string> outputs;
};

// Reads a file and the files of its external data, which must be in its folder. Throws
// std::runtime_error, one line that names the file.
FileGraph read_onnx_file(const std::filesystem::path& path);

// Reads the bytes of a file whose external data are in `folder`.
FileGraph parse_onnx(std::span<const std::uint8_t> bytes, const std::string& path,
                     const std::filesystem::path& folder);

}  // namespace convoy::app::onnx_import
