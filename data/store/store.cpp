#include "data/store/store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "data/path_kind.h"
#include "data/store/hdf5_driver.h"
#include "data/store/store_fields.h"
#include "data/store/stored_images.h"

namespace convoy::data {
namespace {

constexpr std::int64_t kLargestSide = 1 << 16;
constexpr std::int64_t kMostImages = std::int64_t{1} << 32;
// The largest image in bytes. The limit bounds the memory, because each thread holds one image.
constexpr std::int64_t kLargestImageBytes = std::int64_t{1} << 30;

using Labels = std::shared_ptr<const std::vector<std::int32_t>>;
using Offsets = std::shared_ptr<const std::vector<std::int64_t>>;

struct StoredSplit {
  std::int64_t size = 0, bytes = 0, chunk_images = 0;
  ImageFormat format = ImageFormat::pixels;
  ImageShape shape;  // shape of images that are stored as pixels
  std::string path;  // path of the images' dataset within the HDF5 file, such as /train/images
  Offsets offsets;
  Labels labels;
  mutable std::shared_ptr<const ImageSet> images;
};

std::string path_of(Split split, const char* name) { return fmt::format("/{}/{}", name_of(split), name); }

// Throws if the images seem to be [N, C, H, W], as is common in files for PyTorch. This is assumed
// if the last axis cannot be the channels but the second axis can. The last axis can be the
// channels if its extent is 1 to 4 or `means` (the size of the attribute mean). The second axis can
// be the channels if its extent is 1 to 4.
void check_axes(const Hdf5Dataset& images, std::int64_t means) {
  const auto& extents = images.extents;
  const bool plain = extents[3] == means || (extents[3] >= 1 && extents[3] <= 4);
  if (plain || extents[1] > 4) return;
  throw std::runtime_error(
      fmt::format("{}: shape [{}] is [N, C, H, W] with {} channels, expected [N, H, W, C]", images.name,
                  fmt::join(extents, ", "), extents[1]));
}

void open_pixels(hid_t file, const std::string& name, Split split, StoredSplit& result) {
  result.path = path_of(split, "images");
  const Hdf5Dataset images = open_dataset(file, name, result.path, kImages);
  const auto& extents = images.extents;
  const bool sane = extents[0] > 0 && extents[0] <= kMostImages &&
                    std::all_of(extents.begin() + 1, extents.end(),
                                [](std::int64_t extent) { return extent > 0 && extent <= kLargestSide; });
  result.shape = {extents[1], extents[2], extents[3]};
  if (!sane || result.shape.bytes() > kLargestImageBytes) {
    throw std::runtime_error(
        fmt::format("{}: shape [{}], expected 1 to {} images of 1 to {} a side and at most {} bytes",
                    images.name, fmt::join(extents, ", "), kMostImages, kLargestSide, kLargestImageBytes));
  }
  check_axes(images, attribute_count(file, "mean"));
  result.size = extents[0];
  result.bytes = result.size * result.shape.bytes();
  result.chunk_images = images.chunk_rows;
}

void open_encoded(hid_t file, const std::string& name, Split split, StoredSplit& result) {
  result.format = ImageFormat::encoded;
  result.path = path_of(split, "encoded");
  result.bytes = open_dataset(file, name, result.path, kEncoded).extents[0];
  const Hdf5Dataset dataset = open_dataset(file, name, path_of(split, "offsets"), kOffsets);
  if (dataset.extents[0] < 2) {
    throw std::runtime_error(fmt::format("{}: {} values, expected one more than there are images",
                                         dataset.name, dataset.extents[0]));
  }
  std::vector<std::int64_t> offsets = read_integers(dataset);
  if (offsets.front() != 0 || offsets.back() != result.bytes) {
    throw std::runtime_error(fmt::format("{}: from {} to {}, expected from 0 to {}, the size of {}",
                                         dataset.name, offsets.front(), offsets.back(), result.bytes,
                                         result.path));
  }
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1] || offsets[i] - offsets[i - 1] > kLargestImageBytes) {
      throw std::runtime_error(
          fmt::format("{}: image {} from {} to {}, expected offsets that do not descend and at most {} bytes",
                      dataset.name, i - 1, offsets[i - 1], offsets[i], kLargestImageBytes));
    }
  }
  result.size = static_cast<std::int64_t>(offsets.size()) - 1;
  result.offsets = std::make_shared<const std::vector<std::int64_t>>(std::move(offsets));
}

StoredSplit open_split(hid_t file, const std::string& name, Split split) {
  StoredSplit result;
  const bool pixels = exists(file, path_of(split, "images")),
             encoded = exists(file, path_of(split, "encoded"));
  if (pixels && encoded) {
    throw std::runtime_error(
        fmt::format("{}: /{} has images and encoded, expected one of them", name, name_of(split)));
  }
  if (encoded) {
    open_encoded(file, name, split, result);
  } else {
    open_pixels(file, name, split, result);
  }
  return result;
}

void check_same_kind(const std::string& name, const StoredSplit& train, const StoredSplit& test) {
  if (test.format != train.format) {
    throw std::runtime_error(
        fmt::format("{}: {}: expected the same kind of images as {}", name, test.path, train.path));
  }
  if (test.shape != train.shape) {
    throw std::runtime_error(fmt::format("{}: {}: images of {}, expected {} as in {}", name, test.path,
                                         test.shape.to_string(), train.shape.to_string(), train.path));
  }
}

Labels read_labels(hid_t file, const std::string& name, Split split, const StoredSplit& images,
                   std::size_t classes) {
  const Hdf5Dataset dataset = open_dataset(file, name, path_of(split, "labels"), kLabels);
  if (dataset.extents[0] != images.size) {
    throw std::runtime_error(fmt::format("{}: {} labels, expected {} as in {}", dataset.name,
                                         dataset.extents[0], images.size, images.path));
  }
  const std::vector<std::int64_t> values = read_integers(dataset);
  std::vector<std::int32_t> labels(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0 || values[i] >= static_cast<std::int64_t>(classes)) {
      throw std::runtime_error(fmt::format("{}: label {} of image {} is out of range, expected 0 to {}",
                                           dataset.name, values[i], i, classes - 1));
    }
    labels[i] = static_cast<std::int32_t>(values[i]);
  }
  return std::make_shared<const std::vector<std::int32_t>>(std::move(labels));
}

std::size_t index(Split split) { return static_cast<std::size_t>(split); }

}  // namespace

struct Store::State {
  std::string name;
  std::int64_t resident_bytes = 0;
  StoreInfo info;
  hdf5::Handle file;
  std::array<StoredSplit, 2> splits;
};

bool is_hdf5(const std::filesystem::path& file) {
  hdf5::LibraryLock lock;
  return is_file(file) && H5Fis_hdf5(file.c_str()) > 0;
}

Store::Store(const std::filesystem::path& file, std::int64_t resident_bytes)
    : state_(std::make_unique<State>()) {
  hdf5::LibraryLock lock;
  const std::string name = state_->name = file.string();
  state_->resident_bytes = resident_bytes;
  state_->file = hdf5::open_to_read(name);
  const hid_t id = state_->file.get();
  StoreInfo& info = state_->info;
  auto& [train, test] = state_->splits;
  train = open_split(id, name, Split::train);
  test = open_split(id, name, Split::test);
  check_same_kind(name, train, test);
  info.classes = read_classes(id, name);
  info.mean = read_statistics(id, name, "mean", train.shape.channels);
  info.format = train.format;
  info.shape = train.shape;
  info.shape.channels = static_cast<std::int64_t>(info.mean.size());
  info.std = read_statistics(id, name, "std", info.shape.channels);
  for (const Split split : {Split::train, Split::test}) {
    StoredSplit& images = state_->splits[index(split)];
    images.labels = read_labels(id, name, split, images, info.classes.size());
    info.size[index(split)] = images.size;
  }
}

Store::~Store() = default;

const StoreInfo& Store::info() const { return state_->info; }

const std::vector<std::int32_t>& Store::labels(Split split) const {
  return *state_->splits[index(split)].labels;
}

std::int64_t Store::stored_bytes(Split split) const { return state_->splits[index(split)].bytes; }

std::int64_t Store::chunk_images(Split split) const { return state_->splits[index(split)].chunk_images; }

std::shared_ptr<const ImageSet> Store::split(Split split) const {
  hdf5::LibraryLock lock;
  const StoredSplit& stored = state_->splits[index(split)];
  if (stored.images == nullptr) {
    Hdf5Dataset dataset = open_dataset(state_->file.get(), state_->name, stored.path,
                                       stored.format == ImageFormat::pixels ? kImages : kEncoded);
    stored.images = std::make_shared<StoredImages>(
        std::make_unique<DatasetBytes>(std::move(dataset.handle), dataset.name, state_->resident_bytes),
        state_->info.shape, stored.labels, stored.offsets);
  }
  return stored.images;
}

}  // namespace convoy::data
