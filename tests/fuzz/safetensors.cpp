// Defines the fuzz target for safetensors files.
#include "app/model/weights/safetensors.h"

#include <cstring>
#include <stdexcept>

#include "tests/fuzz/targets.h"

namespace convoy::data::fuzz {

std::vector<Bytes> safetensors_seeds() {
  const auto file = [](const std::string& header, std::size_t data) {
    const std::uint64_t length = header.size();
    Bytes bytes(sizeof length + header.size() + data, 0x3f);
    std::memcpy(bytes.data(), &length, sizeof length);
    std::memcpy(bytes.data() + sizeof length, header.data(), header.size());
    return bytes;
  };
  return {
      file(
          R"({"__metadata__":{"format":"pt"},"a.weight":{"dtype":"F32","shape":[2,1,1,1],"data_offsets":[0,8]},)"
          R"("n":{"dtype":"I64","shape":[],"data_offsets":[8,16]}}   )",
          16),
      file(R"({"h":{"dtype":"F16","shape":[3],"data_offsets":[0,6]},"e":{"dtype":"F64","shape":[0],)"
           R"("data_offsets":[6,6]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[6,8]},)"
           R"("f":{"dtype":"F64","shape":[1],"data_offsets":[8,16]},"x":{"dtype":"F8_E4M3","shape":[1],)"
           R"("data_offsets":[16,17]}})",
           17),
      file("{}", 0)};
}

// Checks that the tensors fill the file after its header, and that their values fill their shapes.
bool run_safetensors(std::span<const std::uint8_t> input) {
  std::vector<app::FileTensor> tensors;
  if (!attempt([&] { tensors = app::parse_safetensors(std::as_bytes(input)); })) return false;
  std::size_t bytes = 0;
  for (const app::FileTensor& tensor : tensors) {
    bytes += tensor.bytes.size();
    std::size_t elements = 1;
    for (const std::int64_t extent : tensor.shape) elements *= static_cast<std::size_t>(extent);
    attempt([&] {
      if (tensor.values().size() != elements) throw std::logic_error("values do not fill their shape");
    });
  }
  if (bytes > input.size()) throw std::logic_error("tensors overlap");
  return true;
}

}  // namespace convoy::data::fuzz
