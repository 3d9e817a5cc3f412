// Reads IDX files (LeCun, Cortes, Burges, "The MNIST database"). A file has a big-endian header
// with the type and the extents, and then one byte per value. MNIST, Fashion-MNIST, KMNIST and
// EMNIST consist of four such files each.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "data/convert/catalogue.h"
#include "data/convert/records.h"

namespace convoy::data {
namespace {

struct Part {
  Split split = Split::train;
  bool images = false;
};

// Tells split and content of an IDX file from a name such as train-images-idx3-ubyte or
// t10k-labels.idx1-ubyte.gz.
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
  Bytes values;  // the labels; empty for a file of images
};

// Reads the header of a file. If the file holds labels, reads them, too. Throws unless the file has
// as many bytes as its header says.
Idx parse(const FileSource::Content& content, std::string name, std::size_t rank) {
  Idx idx{std::move(name), {}, {}};
  Bytes header;
  std::int64_t bytes = 0;
  content.stream([&](std::span<const std::uint8_t> piece) {
    const std::size_t missing = std::min(4 + 4 * rank - header.size(), piece.size());
    header.insert(header.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(missing));
    piece = piece.subspan(missing);
    bytes += static_cast<std::int64_t>(piece.size());
    if (rank == 1 && idx.values.size() < kLargestFile)
      idx.values.insert(idx.values.end(), piece.begin(), piece.end());
  });
  if (header.size() < 4 + 4 * rank || header[0] != 0 || header[1] != 0 || header[2] != 8 || header[3] != rank)
    throw std::runtime_error(
        fmt::format("{}: no IDX header, expected 0 0 8 {} (bytes of rank {})", idx.name, rank, rank));
  for (std::size_t at = 4; at < header.size(); at += 4)
    idx.extents.push_back(std::int64_t{header[at]} << 24 | header[at + 1] << 16 | header[at + 2] << 8 |
                          header[at + 3]);
  const bool sane = idx.extents[0] > 0 &&
                    idx.extents[0] <= (rank == 1 ? std::int64_t{kLargestFile} : bytes) &&
                    std::all_of(idx.extents.begin() + 1, idx.extents.end(),
                                [](auto extent) { return extent > 0 && extent < 65536; });
  const std::int64_t values =
      sane ? std::accumulate(idx.extents.begin(), idx.extents.end(), std::int64_t{1}, std::multiplies<>())
           : 0;
  if (!sane || values != bytes)
    throw std::runtime_error(fmt::format("{}: {} bytes after the header, expected {} of shape [{}]", idx.name,
                                         bytes, values, fmt::join(idx.extents, ", ")));
  return idx;
}

struct LabelledImages {
  std::optional<Idx> images, labels;
};

using Splits = std::array<LabelledImages, 2>;

Splits read_splits(Conversion& conversion) {
  Splits splits;
  conversion.source->visit([&](const std::string& path, const FileSource::Content& content) {
    const auto part = part_of(path);
    if (!part) {
      conversion.left_out.add_file(path);
      return true;
    }
    auto& split = splits[static_cast<std::size_t>(part->split)];
    auto& target = part->images ? split.images : split.labels;
    const std::string name = fmt::format("{}: {}", conversion.name, path);
    if (target) throw std::runtime_error(fmt::format("{}: stands for the same as {}", name, target->name));
    target = parse(content, name, part->images ? 3 : 1);
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

void write_split(const Splits& splits, Split split, const FileSource::Content& content, StoreWriter& writer) {
  const LabelledImages& set = splits[static_cast<std::size_t>(split)];
  std::int64_t row = 0;
  const auto bytes = static_cast<std::size_t>(set.images->extents[1] * set.images->extents[2]);
  Records records(bytes, [&](std::span<const std::uint8_t> pixels) {
    const auto first = set.labels->values.begin() + row;
    const auto count = static_cast<std::int64_t>(pixels.size() / bytes);
    writer.write(split, row, pixels, std::vector<std::int32_t>(first, first + count));
    row += count;
  });
  std::size_t header = 16;
  content.stream([&](std::span<const std::uint8_t> piece) {
    const std::size_t skipped = std::min(header, piece.size());
    header -= skipped;
    if (skipped < piece.size()) records.add(piece.subspan(skipped));
  });
}

}  // namespace

bool is_idx_path(const std::string& path) { return part_of(path).has_value(); }

void convert_idx(Conversion& conversion, const Listing&, ConvertReport& report) {
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
  for (const auto& split : splits) largest = std::max(largest, std::ranges::max(split.labels->values));
  std::vector<std::string> classes;
  for (int i = 0; i <= largest; ++i) classes.push_back(std::to_string(i));
  report.classes = static_cast<std::int64_t>(classes.size());
  report.train = images.extents[0];
  report.test = test.extents[0];
  StoreWriter writer(conversion.destination, shape, classes, {report.train, report.test});
  conversion.source->visit([&](const std::string& path, const FileSource::Content& content) {
    const auto part = part_of(path);
    if (part && part->images) write_split(splits, part->split, content, writer);
    return true;
  });
  writer.finish();
}

}  // namespace convoy::data
