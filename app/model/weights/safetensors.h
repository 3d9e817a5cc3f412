// Reads and writes safetensors files (https://github.com/huggingface/safetensors#format): eight
// bytes with the length of a header in JSON, little-endian, the header, and the tensors' bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace convoy::app {

// A tensor of a file: elements in row-major order, little-endian, at any address.
struct FileTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // empty for a scalar
  std::string type;                 // as the format spells it: "F32", "BF16", "I64", ...
  std::span<const std::byte> bytes;

  std::string shape_text() const;  // "64x3x7x7", or "scalar"
  // Converts F32, F16, BF16, F64 and I64 to float32. Throws std::runtime_error, which names the
  // tensor, for other types.
  std::vector<float> values() const;
};

// Returns the tensors by their place in the file; they refer to `file`. Throws std::runtime_error,
// one line that names the wrong part, unless the header is of at most 16 MiB and the tensors fill
// the rest of the file without gap or overlap.
std::vector<FileTensor> parse_safetensors(std::span<const std::byte> file);

// A file mapped into memory.
class SafetensorsFile {
 public:
  // Throws std::runtime_error, one line that starts with the path.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::vector<FileTensor>& tensors() const { return tensors_; }

 private:
  std::shared_ptr<const std::byte> mapping_;
  std::vector<FileTensor> tensors_;
};

// A tensor to write. `type` is "F32" with values, or "I64" with one integer.
struct TensorToWrite {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
  std::int64_t integer = 0;
  bool is_integer = false;
};

// Writes the tensors in the given order, one after the other. Metadata are texts; "format" is "pt",
// which makes other programs read the file as PyTorch's. Throws std::runtime_error that names the
// file if it cannot be written, and std::invalid_argument if values do not fill their shape.
void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace convoy::app
