// IDX files (LeCun, Cortes, Burges, "The MNIST database"): a big-endian header of type and extents, then the
// bytes. MNIST, Fashion-MNIST, KMNIST and EMNIST come as four of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "data/convert/convert.h"
#include "data/store/writer.h"

namespace convoy::data {
namespace {

struct Part {
  Split split = Split::train;
  bool images = false;
};

// train-images-idx3-ubyte, t10k-labels.idx1-ubyte.gz and the like.
std::optional<Part> part_of(const std::string& path) {
  const std::string file = std::filesystem::path(path).filename().string();
  const auto has = [&](const char* word) { return file.find(word) != std::string::npos; };
  if (file.starts_with(".") || !has("ubyte")) return std::nullopt;
  const bool train = has("train"), test = has("t10k") || has("test");
  const bool images = has("idx3"), labels = has("idx1");
  if (train == test || images == labels) return std::nullopt;
  return Part{train ? Split::train : Split::test, images};
}

struct Idx {
  std::string name;
  std::vector<std::int64_t> extents;
  Bytes content;
  std::size_t header = 0;
  std::span<const std::uint8_t> values() const { return std::span(content).subspan(header); }
};

Idx parse(Bytes content, std::string name, std::size_t rank) {
  const auto big_endian = [&](std::size_t at) {
    return std::int64_t{content[at]} << 24 | content[at + 1] << 16 | content[at + 2] << 8 | content[at + 3];
  };
  Idx idx;
  idx.header = 4 + 4 * rank;
  if (content.size() < idx.header || content[0] != 0 || content[1] != 0 || content[2] != 8 ||
      content[3] != rank) {
    throw std::runtime_error(
        fmt::format("{}: no IDX header, expected 0 0 8 {} (bytes of rank {})", name, rank, rank));
  }
  for (std::size_t axis = 0; axis < rank; ++axis) idx.extents.push_back(big_endian(4 + 4 * axis));
  const bool sane =
      idx.extents[0] > 0 && std::all_of(idx.extents.begin() + 1, idx.extents.end(),
                                        [](auto extent) { return extent > 0 && extent < 65536; });
  const std::int64_t values =
      sane ? std::accumulate(idx.extents.begin(), idx.extents.end(), std::int64_t{1}, std::multiplies<>())
           : 0;
  if (!sane || values != static_cast<std::int64_t>(content.size() - idx.header)) {
    throw std::runtime_error(fmt::format("{}: {} bytes after the header, expected {} of shape [{}]", name,
                                         content.size() - idx.header, values, fmt::join(idx.extents, ", ")));
  }
  idx.content = std::move(content);
  idx.name = std::move(name);
  return idx;
}

struct LabelledImages {
  std::optional<Idx> images, labels;
};

using Splits = std::array<LabelledImages, 2>;

Splits read_splits(const Conversion& conversion) {
  Splits splits;
  conversion.files.visit([&](const std::string& path, const auto& read) {
    const auto part = part_of(path);
    if (!part) return true;
    auto& split = splits[static_cast<std::size_t>(part->split)];
    auto& target = part->images ? split.images : split.labels;
    const std::string name = fmt::format("{}: {}", conversion.name, path);
    if (target) throw std::runtime_error(fmt::format("{}: stands for the same as {}", name, target->name));
    target = parse(read(), name, part->images ? 3 : 1);
    return true;
  });
  for (const Split split : {Split::train, Split::test}) {
    const auto& [images, labels] = splits[static_cast<std::size_t>(split)];
    if (!images || !labels) {
      throw std::runtime_error(fmt::format("{}: no {} {}, expected a file like {}-{}", conversion.name,
                                           name_of(split), images ? "labels" : "images",
                                           split == Split::train ? "train" : "t10k",
                                           images ? "labels-idx1-ubyte" : "images-idx3-ubyte"));
    }
    if (images->extents[0] != labels->extents[0]) {
      throw std::runtime_error(fmt::format("{}: {} labels, expected {} as in {}", labels->name,
                                           labels->extents[0], images->extents[0], images->name));
    }
  }
  return splits;
}

}  // namespace

bool is_idx_path(const std::string& path) { return part_of(path).has_value(); }

ConvertReport convert_idx(const Conversion& conversion) {
  const Splits splits = read_splits(conversion);
  const Idx& images = *splits[0].images;
  const ImageShape shape{images.extents[1], images.extents[2], 1};
  const Idx& test = *splits[1].images;
  if (test.extents[1] != shape.height || test.extents[2] != shape.width) {
    throw std::runtime_error(fmt::format("{}: images of {}x{}, expected {}x{} as in {}", test.name,
                                         test.extents[1], test.extents[2], shape.height, shape.width,
                                         images.name));
  }
  std::uint8_t largest = 0;
  for (const auto& split : splits) largest = std::max(largest, std::ranges::max(split.labels->values()));
  std::vector<std::string> classes;
  for (int i = 0; i <= largest; ++i) classes.push_back(std::to_string(i));
  ConvertReport report;
  report.train = images.extents[0];
  report.test = test.extents[0];
  StoreWriter writer(conversion.destination, shape, classes, {report.train, report.test});
  for (const Split split : {Split::train, Split::test}) {
    const auto& parts = splits[static_cast<std::size_t>(split)];
    const auto values = parts.labels->values();
    writer.write(split, 0, parts.images->values(), std::vector<std::int32_t>(values.begin(), values.end()));
  }
  writer.finish();
  return report;
}

}  // namespace convoy::data
