// Reads and writes safetensors files (https://github.com/huggingface/safetensors#format). A file
// has eight bytes with the length of the header (little-endian), the header in JSON, and the bytes
// of the tensors.
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

// A tensor of a file. Its elements are in row-major order and little-endian. Their address need not
// be aligned.
struct FileTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // empty for a scalar
  // The name of the type in the format: "F32", "BF16", "I64", ...
  std::string type;
  std::span<const std::byte> bytes;

  std::string shape_text() const;  // for example "64x3x7x7" or "scalar"
  // Returns elements of type F32, F16, BF16, F64 or I64 as float32. Throws std::runtime_error that
  // names the tensor if it has another type.
  std::vector<float> values() const;
};

// Returns the tensors in the order of the file, as references into `file`. Throws
// std::runtime_error if the header is invalid or exceeds 16 MiB, or if the tensors do not fill the
// rest of the file without gap or overlap. The message is one line that names what is wrong.
std::vector<FileTensor> parse_safetensors(std::span<const std::byte> file,
                                          std::map<std::string, std::string>* metadata = nullptr);

// A safetensors file that is mapped into memory.
class SafetensorsFile {
 public:
  // Opens the file. Throws std::runtime_error in one line that starts with the path.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::vector<FileTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::shared_ptr<const std::byte> mapping_;
  std::vector<FileTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// A tensor to write: float values, which get the type "F32", or one integer, which gets "I64".
struct TensorToWrite {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
  std::int64_t integer = 0;
  bool is_integer = false;
};

// Writes the tensors one after the other: first all integers, then the others, each in the given
// order. Other programs take the file for one of PyTorch if the entry "format" of `metadata` is
// "pt". Throws std::runtime_error that names the file if it cannot be written, and
// std::invalid_argument if values do not fill their shape.
void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace convoy::app
