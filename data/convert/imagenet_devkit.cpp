#include "data/convert/imagenet_devkit.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace convoy::data {
namespace {

constexpr std::size_t kHeaderBytes = 128;
constexpr std::size_t kMostUnpacked = 64 << 20;
// The types of data elements in a MATLAB file.
constexpr std::uint32_t kInt8 = 1, kUint8 = 2, kInt16 = 3, kUint16 = 4, kInt32 = 5, kUint32 = 6, kSingle = 7,
                        kDouble = 9, kInt64 = 12, kUint64 = 13, kMatrix = 14, kCompressed = 15, kUtf8 = 16;
constexpr std::uint32_t kStructClass = 2;

using View = std::span<const std::uint8_t>;

std::uint32_t word(View bytes) {
  if (bytes.size() < 4) throw std::runtime_error("a MATLAB file that is cut short");
  std::uint32_t value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

struct Element {
  std::uint32_t type = 0;
  View data;
};

// Removes the next element from the front of `bytes` and returns it. All elements except compressed
// ones are padded to a multiple of 8 bytes.
Element take(View& bytes) {
  const std::uint32_t tag = word(bytes);
  if (tag >> 16 != 0) {  // a small element: its size shares a word with its type
    const std::size_t size = tag >> 16;
    if (size > 4 || bytes.size() < 8) throw std::runtime_error("a MATLAB file that is damaged");
    const Element element{tag & 0xFFFF, bytes.subspan(4, size)};
    bytes = bytes.subspan(8);
    return element;
  }
  const std::size_t size = word(bytes.subspan(4));
  if (size > bytes.size() - 8) throw std::runtime_error("a MATLAB file that is cut short");
  const Element element{tag, bytes.subspan(8, size)};
  const std::size_t padded = tag == kCompressed ? size : (size + 7) / 8 * 8;
  bytes = bytes.subspan(std::min(8 + padded, bytes.size()));
  return element;
}

Bytes inflated(View data) {
  Bytes result(std::min(kMostUnpacked, std::max<std::size_t>(data.size() * 16, 1024)));
  for (;;) {
    uLongf size = result.size();
    const int status = ::uncompress(result.data(), &size, data.data(), data.size());
    if (status == Z_OK) {
      result.resize(size);
      return result;
    }
    if (status != Z_BUF_ERROR || result.size() == kMostUnpacked)
      throw std::runtime_error("a MATLAB file whose compressed data are damaged");
    result.resize(std::min(kMostUnpacked, result.size() * 4));
  }
}

std::optional<double> number_in(const Element& element) {
  const auto read = [&]<typename T>(T value) -> std::optional<double> {
    if (element.data.size() != sizeof value) return std::nullopt;
    std::memcpy(&value, element.data.data(), sizeof value);
    return static_cast<double>(value);
  };
  switch (element.type) {
    case kInt8:
      return read(std::int8_t{});
    case kUint8:
      return read(std::uint8_t{});
    case kInt16:
      return read(std::int16_t{});
    case kUint16:
      return read(std::uint16_t{});
    case kInt32:
      return read(std::int32_t{});
    case kUint32:
      return read(std::uint32_t{});
    case kInt64:
      return read(std::int64_t{});
    case kUint64:
      return read(std::uint64_t{});
    case kSingle:
      return read(float{});
    case kDouble:
      return read(double{});
    default:
      return std::nullopt;
  }
}

std::string text_in(const Element& element) {
  // `width` is the number of bytes per character. Only ASCII text (WordNet IDs) is read.
  const std::size_t width = element.type == kUint16 ? 2 : 1;
  if (element.type != kUint16 && element.type != kUtf8 && element.type != kInt8 && element.type != kUint8)
    return "";
  std::string text;
  for (std::size_t at = 0; at < element.data.size(); at += width) text += static_cast<char>(element.data[at]);
  return text;
}

// Returns the real part of a matrix, which is the element after its flags, extents and name.
Element values_of(View matrix) {
  for (int i = 0; i < 3; ++i) take(matrix);
  return take(matrix);
}

std::vector<std::string> field_names(const Element& length, const Element& names) {
  const std::size_t width = length.data.size() == 4 ? word(length.data) : 0;
  if (width == 0 || names.data.size() % width != 0) throw std::runtime_error("a MATLAB file that is damaged");
  std::vector<std::string> result;
  for (std::size_t at = 0; at < names.data.size(); at += width) {
    const auto* text = reinterpret_cast<const char*>(names.data.data() + at);
    result.emplace_back(text, ::strnlen(text, width));
  }
  return result;
}

// If the variable is the struct array `synsets`, adds its classes to the map `synsets`.
void read_variable(View matrix, std::map<int, std::string>& synsets) {
  const Element flags = take(matrix);
  take(matrix);  // skips the extents
  const Element name = take(matrix);
  if (text_in(name) != "synsets" || (word(flags.data) & 0xFF) != kStructClass) return;
  const Element length = take(matrix);
  const auto fields = field_names(length, take(matrix));
  while (!fields.empty() && !matrix.empty()) {
    std::optional<double> id;
    std::string wnid;
    for (const std::string& field : fields) {
      const Element element = take(matrix);
      if (element.type != kMatrix || element.data.empty()) continue;
      if (field == "ILSVRC2012_ID") id = number_in(values_of(element.data));
      if (field == "WNID") wnid = text_in(values_of(element.data));
    }
    if (id && *id >= 1 && *id <= 1e6 && !wnid.empty()) synsets[static_cast<int>(*id)] = wnid;
  }
}

std::string find(const Listing& listing, const std::string& file) {
  const auto found = std::find_if(listing.files.begin(), listing.files.end(), [&](const std::string& path) {
    return path == file || path.ends_with("/" + file);
  });
  return found == listing.files.end() ? "" : *found;
}

constexpr const char* kGroundTruth = "ILSVRC2012_validation_ground_truth.txt";
constexpr const char* kMeta = "meta.mat";

}  // namespace

std::map<int, std::string> read_synsets(const Bytes& mat_file) {
  static_assert(std::endian::native == std::endian::little);
  if (mat_file.size() < kHeaderBytes || mat_file[126] != 'I' || mat_file[127] != 'M')
    throw std::runtime_error("no MATLAB file of level 5 in little-endian order");
  std::map<int, std::string> synsets;
  View rest = std::span(mat_file).subspan(kHeaderBytes);
  while (rest.size() >= 8) {
    const Element element = take(rest);
    if (element.type == kMatrix) read_variable(element.data, synsets);
    if (element.type != kCompressed) continue;
    const Bytes unpacked = inflated(element.data);
    View inner(unpacked);
    const Element variable = take(inner);
    if (variable.type == kMatrix) read_variable(variable.data, synsets);
  }
  if (synsets.empty()) throw std::runtime_error("no synsets with ILSVRC2012_ID and WNID");
  return synsets;
}

bool is_imagenet_devkit(const Listing& listing) {
  return !find(listing, kGroundTruth).empty() && !find(listing, kMeta).empty();
}

std::vector<std::string> read_imagenet_devkit(const FileSource& source, const Listing& listing) {
  const std::string truth_path = find(listing, kGroundTruth), meta_path = find(listing, kMeta);
  std::map<int, std::string> synsets;
  try {
    synsets = read_synsets(source.read(meta_path));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}: {}", source.name(), meta_path, error.what()));
  }
  const Bytes truth = source.read(truth_path);
  std::istringstream numbers(std::string(truth.begin(), truth.end()));
  std::vector<std::string> labels;
  for (int number; numbers >> number;) {
    const auto synset = synsets.find(number);
    if (synset == synsets.end())
      throw std::runtime_error(fmt::format("{}: {}: number {} of image {} is not in {}", source.name(),
                                           truth_path, number, labels.size() + 1, kMeta));
    labels.push_back(synset->second);
  }
  return labels;
}

}  // namespace convoy::data
