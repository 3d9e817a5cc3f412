#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "app/model/weights/safetensors.h"

namespace convoy::app {
namespace {

// The data of the tensors start at a multiple of this many bytes. The header is padded with spaces.
constexpr std::size_t kAlignment = 8;

std::span<const std::byte> bytes_of(const TensorToWrite& tensor) {
  return tensor.is_integer ? std::as_bytes(std::span(&tensor.integer, 1)) : std::as_bytes(tensor.values);
}

// Returns the tensors with integers first. Integers have eight bytes, so they stay aligned
// regardless of the sizes of the other tensors.
std::vector<const TensorToWrite*> in_file_order(const std::vector<TensorToWrite>& tensors) {
  std::vector<const TensorToWrite*> order;
  for (const bool integers : {true, false})
    for (const TensorToWrite& tensor : tensors)
      if (tensor.is_integer == integers) order.push_back(&tensor);
  return order;
}

std::string header_of(const std::vector<const TensorToWrite*>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  std::size_t next = 0;
  for (const TensorToWrite* tensor : tensors) {
    const std::int64_t elements =
        std::accumulate(tensor->shape.begin(), tensor->shape.end(), std::int64_t{1}, std::multiplies<>());
    if (!tensor->is_integer && elements != std::ssize(tensor->values))
      throw std::invalid_argument(fmt::format("tensor '{}': {} values for {} elements", tensor->name,
                                              tensor->values.size(), elements));
    const std::size_t end = next + bytes_of(*tensor).size();
    header[tensor->name] = {{"dtype", tensor->is_integer ? "I64" : "F32"},
                            {"shape", tensor->shape},
                            {"data_offsets", {next, end}}};
    next = end;
  }
  std::string text = header.dump();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::vector<const TensorToWrite*> order = in_file_order(tensors);
  const std::string header = header_of(order, metadata);
  const std::uint64_t length = header.size();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  for (const TensorToWrite* tensor : order) {
    const std::span<const std::byte> bytes = bytes_of(*tensor);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  file.close();
  if (!file)
    throw std::runtime_error(fmt::format("{}: cannot write: {}", path.string(), std::strerror(errno)));
}

}  // namespace convoy::app
