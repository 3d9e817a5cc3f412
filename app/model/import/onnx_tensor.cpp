#include "app/model/import/onnx_tensor.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>

namespace convoy::app::onnx_import {
namespace {

using onnx::TensorProto;

static_assert(std::endian::native == std::endian::little, "raw data is little-endian");

[[noreturn]] void fail(const TensorProto& tensor, const std::string& message) {
  throw std::runtime_error(fmt::format("tensor {}: {}", tensor.name(), message));
}

float from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const float fraction = static_cast<float>(bits & 1023) / 1024;
  const float sign = bits >> 15 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return exponent == 0 ? sign * std::ldexp(fraction, -14) : sign * std::ldexp(1 + fraction, exponent - 15);
}

float from_bfloat(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::size_t bytes_of_element(std::int32_t type) {
  switch (type) {
    case TensorProto::BOOL:
    case TensorProto::INT8:
    case TensorProto::UINT8:
      return 1;
    case TensorProto::INT16:
    case TensorProto::UINT16:
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      return 2;
    case TensorProto::INT32:
    case TensorProto::UINT32:
    case TensorProto::FLOAT:
      return 4;
    case TensorProto::INT64:
    case TensorProto::UINT64:
    case TensorProto::DOUBLE:
      return 8;
    default:
      return 0;
  }
}

bool is_real(std::int32_t type) {
  return type == TensorProto::FLOAT || type == TensorProto::DOUBLE || type == TensorProto::FLOAT16 ||
         type == TensorProto::BFLOAT16;
}

// Reads elements of type Stored from `bytes` and stores them in `values`, each converted by
// `convert`.
template <typename Stored, typename Values, typename Convert>
void take(const std::string& bytes, Values& values, const Convert& convert) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = static_cast<typename Values::value_type>(convert(stored));
  }
}

template <typename Stored, typename Values>
void take(const std::string& bytes, Values& values) {
  take<Stored>(bytes, values, [](Stored value) { return value; });
}

void take_reals(std::int32_t type, const std::string& bytes, std::vector<float>& values) {
  if (type == TensorProto::FLOAT) return take<float>(bytes, values);
  if (type == TensorProto::DOUBLE) return take<double>(bytes, values);
  take<std::uint16_t>(bytes, values, type == TensorProto::FLOAT16 ? from_half : from_bfloat);
}

void take_integers(std::int32_t type, const std::string& bytes, std::vector<std::int64_t>& values) {
  switch (type) {
    case TensorProto::INT8:
      return take<std::int8_t>(bytes, values);
    case TensorProto::BOOL:
    case TensorProto::UINT8:
      return take<std::uint8_t>(bytes, values);
    case TensorProto::INT16:
      return take<std::int16_t>(bytes, values);
    case TensorProto::UINT16:
      return take<std::uint16_t>(bytes, values);
    case TensorProto::INT32:
      return take<std::int32_t>(bytes, values);
    case TensorProto::UINT32:
      return take<std::uint32_t>(bytes, values);
    default:
      return take<std::int64_t>(bytes, values);
  }
}

std::int64_t number_of(const TensorProto& tensor, const std::string& key, const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    fail(tensor, fmt::format("external data: found {} '{:.40}', expected a number of bytes", key, text));
  return number;
}

// Returns the path of a file of external data. Fails unless the file is in the model's folder;
// symbolic links must not lead out of it.
std::filesystem::path inside(const TensorProto& tensor, const std::filesystem::path& folder,
                             const std::string& location) {
  std::error_code unknown;  // a path that cannot be reached is empty, so it is refused
  const std::filesystem::path root =
      std::filesystem::weakly_canonical(folder.empty() ? "." : folder, unknown);
  const std::filesystem::path file = std::filesystem::weakly_canonical(root / location, unknown);
  const auto relative = file.lexically_relative(root);
  if (location.empty() || std::filesystem::path(location).is_absolute() || relative.empty() ||
      *relative.begin() == ".." || !std::filesystem::is_regular_file(file, unknown))
    fail(tensor,
         fmt::format("external data: found '{:.200}', expected a file in the model's folder", location));
  return file;
}

std::string external_bytes(const TensorProto& tensor, const std::filesystem::path& folder,
                           std::size_t bytes) {
  std::string location;
  std::int64_t offset = 0;
  std::int64_t length = static_cast<std::int64_t>(bytes);
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = number_of(tensor, entry.key(), entry.value());
    if (entry.key() == "length") length = number_of(tensor, entry.key(), entry.value());
  }
  if (length != static_cast<std::int64_t>(bytes))
    fail(tensor, fmt::format("external data: found {} bytes, expected {}", length, bytes));
  const std::filesystem::path path = inside(tensor, folder, location);
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
  if (offset > size || length > size - offset)
    fail(tensor, fmt::format("external data: bytes {} to {} of {}, which has {}", offset, offset + length,
                             path.filename().string(), size));
  std::string read(bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(offset);
  if (!file.read(read.data(), length)) fail(tensor, fmt::format("cannot read {}", path.string()));
  return read;
}

template <typename Field, typename Values, typename Convert>
void take_field(const TensorProto& tensor, const Field& field, Values& values, const Convert& convert) {
  if (static_cast<std::size_t>(field.size()) != values.size())
    fail(tensor, fmt::format("has {} values, expected {}", field.size(), values.size()));
  for (int i = 0; i < field.size(); ++i)
    values[static_cast<std::size_t>(i)] = static_cast<typename Values::value_type>(convert(field[i]));
}

// Reads values from a typed field of the tensor. Small types are stored in a wider field, for
// example FLOAT16 in int32_data.
void take_fields(const TensorProto& tensor, Constant& constant, std::vector<float>& reals) {
  const auto plain = [](auto value) { return value; };
  const auto half = [](std::int32_t bits) { return from_half(static_cast<std::uint16_t>(bits)); };
  const auto bfloat = [](std::int32_t bits) { return from_bfloat(static_cast<std::uint16_t>(bits)); };
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return take_field(tensor, tensor.float_data(), reals, plain);
    case TensorProto::DOUBLE:
      return take_field(tensor, tensor.double_data(), reals, plain);
    case TensorProto::FLOAT16:
      return take_field(tensor, tensor.int32_data(), reals, half);
    case TensorProto::BFLOAT16:
      return take_field(tensor, tensor.int32_data(), reals, bfloat);
    case TensorProto::INT64:
      return take_field(tensor, tensor.int64_data(), constant.integers, plain);
    case TensorProto::UINT32:
    case TensorProto::UINT64:
      return take_field(tensor, tensor.uint64_data(), constant.integers, plain);
    default:
      return take_field(tensor, tensor.int32_data(), constant.integers, plain);
  }
}

std::size_t stored_values(const TensorProto& tensor) {
  return static_cast<std::size_t>(tensor.float_data_size()) +
         static_cast<std::size_t>(tensor.int32_data_size()) +
         static_cast<std::size_t>(tensor.int64_data_size()) +
         static_cast<std::size_t>(tensor.double_data_size()) +
         static_cast<std::size_t>(tensor.uint64_data_size());
}

}  // namespace

Constant read_tensor(const TensorProto& tensor, const std::filesystem::path& folder) {
  Constant constant;
  constant.name = tensor.name();
  constant.dims.assign(tensor.dims().begin(), tensor.dims().end());
  constant.stored = constant.dims;
  const std::int32_t type = tensor.data_type();
  const std::size_t width = bytes_of_element(type);
  if (width == 0) fail(tensor, fmt::format("has type {}, expected integers or real numbers", type));
  if (tensor.has_segment()) fail(tensor, "is stored in segments, which are not supported");
  std::size_t count = 0;
  try {
    count = static_cast<std::size_t>(elements_of(constant.dims));
  } catch (const std::runtime_error& error) {
    fail(tensor, error.what());
  }
  const bool external = tensor.data_location() == TensorProto::EXTERNAL;
  const bool raw = external || tensor.has_raw_data();
  const std::string read = external ? external_bytes(tensor, folder, count * width) : std::string();
  const std::string& bytes = external ? read : tensor.raw_data();
  if (raw && bytes.size() != count * width)
    fail(tensor, fmt::format("has {} bytes, expected {} for {}", bytes.size(), count * width,
                             to_string(constant.dims)));
  if (!raw && stored_values(tensor) != count)
    fail(tensor, fmt::format("has {} values, expected {} for {}", stored_values(tensor), count,
                             to_string(constant.dims)));
  constant.is_integer = !is_real(type);
  std::vector<float> reals(constant.is_integer ? 0 : count);
  constant.integers.resize(constant.is_integer ? count : 0);
  if (!raw)
    take_fields(tensor, constant, reals);
  else if (constant.is_integer)
    take_integers(type, bytes, constant.integers);
  else
    take_reals(type, bytes, reals);
  if (!constant.is_integer) constant.reals = std::make_shared<const std::vector<float>>(std::move(reals));
  return constant;
}

}  // namespace convoy::app::onnx_import
