#include "app/model/weights/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>

namespace convoy::app {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint64_t kLengthBytes = 8, kMostHeaderBytes = 16 << 20;
constexpr std::int64_t kMostRank = 16;

[[noreturn]] void fail(const std::string& message) { throw std::runtime_error(message); }

// Returns the bytes of one element. Returns nothing for unknown types, and for real numbers of 8
// bits and fewer, which Convoy cannot read.
std::optional<std::uint64_t> bytes_of_type(std::string_view type) {
  constexpr std::pair<std::string_view, std::uint64_t> kTypes[] = {
      {"F64", 8}, {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4},  {"U32", 4}, {"F16", 2},
      {"I16", 2}, {"U16", 2}, {"I8", 1},  {"U8", 1},  {"BF16", 2}, {"BOOL", 1}};
  const auto found = std::ranges::find(kTypes, type, &std::pair<std::string_view, std::uint64_t>::first);
  if (found == std::end(kTypes)) return std::nullopt;
  return found->second;
}

// Parses the header. Throws if a tensor's name occurs twice; the JSON parser alone would accept
// that.
json parse_header(std::string_view text) {
  std::set<std::string> names;
  const auto refuse_second = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key && depth == 1 && !names.insert(parsed.get<std::string>()).second)
      fail(fmt::format("header: found tensor '{}' twice", parsed.get<std::string>()));
    return true;
  };
  try {
    json header = json::parse(text, refuse_second);
    if (!header.is_object()) fail("header: found no JSON object");
    return header;
  } catch (const json::exception& error) {
    fail(fmt::format("header: not JSON: {}", error.what()));
  }
}

std::uint64_t whole_number(const json& value, const std::string& what) {
  if (!value.is_number_unsigned())
    fail(fmt::format("{}: found {}, expected a whole number", what, value.dump()));
  return value.get<std::uint64_t>();
}

const json& field(const json& tensor, const std::string& name, const char* key) {
  const auto found = tensor.find(key);
  if (found == tensor.end()) fail(fmt::format("tensor '{}': found no {}", name, key));
  return *found;
}

// Reads the type and the shape of a tensor. Returns the size in bytes that its data must have.
std::uint64_t read_form(const json& entry, FileTensor& tensor) {
  const json& type = field(entry, tensor.name, "dtype");
  const auto element = type.is_string() ? bytes_of_type(type.get_ref<const std::string&>()) : std::nullopt;
  if (!element)
    fail(fmt::format("tensor '{}': found dtype {}, expected F32, F16, BF16, F64, an integer or BOOL",
                     tensor.name, type.dump()));
  tensor.type = type.get<std::string>();
  const json& shape = field(entry, tensor.name, "shape");
  if (!shape.is_array() || std::ssize(shape) > kMostRank)
    fail(fmt::format("tensor '{}': found no list of at most {} extents in shape", tensor.name, kMostRank));
  std::uint64_t bytes = *element;
  for (const json& extent : shape) {
    const std::uint64_t value = whole_number(extent, fmt::format("tensor '{}': shape", tensor.name));
    if (__builtin_mul_overflow(bytes, value, &bytes) || value > INT64_MAX)
      fail(fmt::format("tensor '{}': found a shape of more than 2^64 bytes", tensor.name));
    tensor.shape.push_back(static_cast<std::int64_t>(value));
  }
  return bytes;
}

FileTensor read_entry(const std::string& name, const json& entry, std::span<const std::byte> data) {
  FileTensor tensor{name, {}, {}, {}};
  if (!entry.is_object()) fail(fmt::format("tensor '{}': found no JSON object", name));
  const std::uint64_t bytes = read_form(entry, tensor);
  const json& offsets = field(entry, name, "data_offsets");
  if (!offsets.is_array() || offsets.size() != 2)
    fail(fmt::format("tensor '{}': found no pair of numbers in data_offsets", name));
  const std::string what = fmt::format("tensor '{}': data_offsets", name);
  const std::uint64_t begin = whole_number(offsets[0], what), end = whole_number(offsets[1], what);
  if (begin > end || end > data.size())
    fail(fmt::format("{}: found {} to {}, expected a range in the file's {} bytes of data", what, begin, end,
                     data.size()));
  if (end - begin != bytes)
    fail(fmt::format("{}: found {} bytes, but {} of {} takes {}", what, end - begin, tensor.type,
                     tensor.shape_text(), bytes));
  tensor.bytes = data.subspan(begin, end - begin);
  return tensor;
}

// Throws unless the tensors fill `data` exactly. A gap or an overlap shows that the header does not
// belong to this data.
void check_places(const std::vector<FileTensor>& tensors, std::span<const std::byte> data) {
  const std::byte* next = data.data();
  for (const FileTensor& tensor : tensors) {
    if (tensor.bytes.data() != next)
      fail(fmt::format(
          "tensor '{}': starts at byte {} of the data, expected {}, the end of the tensor before it",
          tensor.name, tensor.bytes.data() - data.data(), next - data.data()));
    next += tensor.bytes.size();
  }
  if (next != data.data() + data.size())
    fail(fmt::format("found {} bytes after the last tensor", data.data() + data.size() - next));
}

float from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31u, fraction = half & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float tiny = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -tiny : tiny;
}

template <typename Stored, typename Convert>
std::vector<float> converted(std::span<const std::byte> bytes, const Convert& convert) {
  std::vector<float> values(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
    values[i] = convert(stored);
  }
  return values;
}

std::shared_ptr<const std::byte> map_file(const std::filesystem::path& path, std::size_t& bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(fmt::format("cannot open: {}", std::strerror(errno)));
  const std::shared_ptr<const int> closer(&file, [](const int* open) { ::close(*open); });
  struct stat facts {};
  if (::fstat(file, &facts) != 0) fail(fmt::format("cannot read: {}", std::strerror(errno)));
  if (!S_ISREG(facts.st_mode)) fail("is no regular file");
  bytes = static_cast<std::size_t>(facts.st_size);
  if (bytes == 0) fail("is empty, expected a safetensors file");
  void* const address = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  if (address == MAP_FAILED) fail(fmt::format("cannot map into memory: {}", std::strerror(errno)));
  return {static_cast<const std::byte*>(address),
          [bytes](const std::byte* mapped) { ::munmap(const_cast<std::byte*>(mapped), bytes); }};
}

}  // namespace

std::string FileTensor::shape_text() const {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

std::vector<float> FileTensor::values() const {
  if (type == "F32") return converted<float>(bytes, [](float value) { return value; });
  if (type == "F16") return converted<std::uint16_t>(bytes, from_half);
  if (type == "BF16")
    return converted<std::uint16_t>(
        bytes, [](std::uint16_t value) { return std::bit_cast<float>(std::uint32_t{value} << 16); });
  if (type == "F64") return converted<double>(bytes, [](double value) { return static_cast<float>(value); });
  if (type == "I64")
    return converted<std::int64_t>(bytes, [](std::int64_t value) { return static_cast<float>(value); });
  fail(fmt::format("tensor '{}': found dtype {}, expected F32, F16, BF16, F64 or I64", name, type));
}

std::vector<FileTensor> parse_safetensors(std::span<const std::byte> file,
                                          std::map<std::string, std::string>* metadata) {
  if (file.size() < kLengthBytes)
    fail(fmt::format("found {} bytes, expected a safetensors file", file.size()));
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  if (length > kMostHeaderBytes || length > file.size() - kLengthBytes)
    fail(fmt::format(
        "found a header of {} bytes in a file of {}, expected at most {}; is it a safetensors file?", length,
        file.size(), std::min<std::uint64_t>(kMostHeaderBytes, file.size() - kLengthBytes)));
  const auto* text = reinterpret_cast<const char*>(file.data() + kLengthBytes);
  const json header = parse_header({text, static_cast<std::size_t>(length)});
  const std::span<const std::byte> data = file.subspan(kLengthBytes + length);
  std::vector<FileTensor> tensors;
  for (const auto& [name, entry] : header.items())
    if (name != "__metadata__") tensors.push_back(read_entry(name, entry, data));
  // Sort by address for check_places(). An empty tensor comes before a tensor at the same address.
  std::ranges::stable_sort(tensors, {}, [](const FileTensor& tensor) {
    return std::pair(tensor.bytes.data(), tensor.bytes.size());
  });
  check_places(tensors, data);
  if (const auto found = header.find("__metadata__"); metadata != nullptr && found != header.end())
    for (const auto& [key, value] : found->items())
      if (value.is_string()) metadata->emplace(key, value.get<std::string>());
  return tensors;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) {
  try {
    std::size_t bytes = 0;
    mapping_ = map_file(path, bytes);
    tensors_ = parse_safetensors({mapping_.get(), bytes}, &metadata_);
  } catch (const std::runtime_error& error) {
    fail(fmt::format("{}: {}", path.string(), error.what()));
  }
}

}  // namespace convoy::app
