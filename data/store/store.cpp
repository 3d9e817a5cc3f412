#include "data/store/store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "data/store/hdf5.h"
#include "data/store/stored_images.h"

namespace convoy::data {
namespace {

using hdf5::Handle;
using hdf5::own;

// Beyond these a header is damaged or hostile; they keep sizes computed from it far from overflow.
constexpr std::int64_t kLargestExtent = 1 << 16;
constexpr std::int64_t kLargestCount = std::int64_t{1} << 40;

struct Dataset {
  Handle handle;
  std::string name;  // "FILE: /train/images"
  std::vector<std::int64_t> extents;
  std::int64_t chunk_rows = 0;
};

std::string describe_type(hid_t type) {
  const std::size_t bits = H5Tget_size(type) * 8;
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return fmt::format("{}int{}", H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
    case H5T_FLOAT:
      return fmt::format("float{}", bits);
    case H5T_STRING:
      return "strings";
    default:
      return "another type";
  }
}

bool exists(hid_t file, const std::string& path) {
  // Every link on the way is asked for: HDF5 fails on the first that is missing.
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    if (H5Lexists(file, path.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) return H5Oexists_by_name(file, path.c_str(), H5P_DEFAULT) > 0;
  }
}

// Opens a dataset and checks rank and element type.
Dataset open_dataset(hid_t file, const std::string& file_name, const std::string& path, std::size_t rank,
                     const char* type) {
  Dataset dataset;
  dataset.name = fmt::format("{}: {}", file_name, path);
  const std::string expected =
      fmt::format("expected a dataset of {} of rank {} {}", type, rank, rank == 4 ? "[N, H, W, C]" : "[N]");
  if (!exists(file, path)) throw std::runtime_error(fmt::format("{}: missing, {}", dataset.name, expected));
  dataset.handle = Handle(H5Dopen2(file, path.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.handle) throw std::runtime_error(fmt::format("{}: no dataset, {}", dataset.name, expected));
  const Handle space = own(H5Dget_space(dataset.handle.get()), H5Sclose, dataset.name);
  const int found_rank = H5Sget_simple_extent_ndims(space.get());
  const Handle element = own(H5Dget_type(dataset.handle.get()), H5Tclose, dataset.name);
  const std::string found_type = describe_type(element.get());
  if (found_rank != static_cast<int>(rank) || found_type != type) {
    throw std::runtime_error(
        fmt::format("{}: {} of rank {}, {}", dataset.name, found_type, found_rank, expected));
  }
  std::vector<hsize_t> extents(rank);
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  for (const hsize_t extent : extents) dataset.extents.push_back(static_cast<std::int64_t>(extent));
  const Handle creation = own(H5Dget_create_plist(dataset.handle.get()), H5Pclose, dataset.name);
  if (H5Pget_layout(creation.get()) == H5D_CHUNKED) {
    if (H5Pget_chunk(creation.get(), static_cast<int>(rank), extents.data()) > 0) {
      dataset.chunk_rows = static_cast<std::int64_t>(extents[0]);
    }
  }
  return dataset;
}

Dataset open_images(hid_t file, const std::string& file_name, Split split) {
  Dataset images = open_dataset(file, file_name, fmt::format("/{}/images", name_of(split)), 4, "uint8");
  const auto& extents = images.extents;
  const bool sane = extents[0] > 0 && extents[0] < kLargestCount &&
                    std::all_of(extents.begin() + 1, extents.end(),
                                [](std::int64_t extent) { return extent > 0 && extent <= kLargestExtent; });
  if (!sane) {
    throw std::runtime_error(fmt::format("{}: shape [{}], expected at least one image of 1 to {} a side",
                                         images.name, fmt::join(extents, ", "), kLargestExtent));
  }
  // Deflate shrinks at most 1032-fold: a damaged count is found here and not by running out of memory.
  const std::int64_t bytes = static_cast<std::int64_t>(std::filesystem::file_size(file_name));
  if (extents[0] / 1032 > bytes / (extents[1] * extents[2] * extents[3]) + 1) {
    throw std::runtime_error(fmt::format("{}: shape [{}] in a file of {} bytes, expected it to fit",
                                         images.name, fmt::join(extents, ", "), bytes));
  }
  return images;
}

std::vector<std::int32_t> read_labels(hid_t file, const std::string& file_name, Split split,
                                      std::int64_t images, std::size_t classes) {
  const Dataset dataset =
      open_dataset(file, file_name, fmt::format("/{}/labels", name_of(split)), 1, "int32");
  if (dataset.extents[0] != images) {
    throw std::runtime_error(fmt::format("{}: {} labels, expected {} as in /{}/images", dataset.name,
                                         dataset.extents[0], images, name_of(split)));
  }
  std::vector<std::int32_t> labels(static_cast<std::size_t>(images));
  hdf5::check(H5Dread(dataset.handle.get(), H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels.data()),
              dataset.name + ": cannot read");
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= static_cast<std::int64_t>(classes)) {
      throw std::runtime_error(fmt::format("{}: label {} of image {} is out of range, expected 0 to {}",
                                           dataset.name, labels[i], i, classes - 1));
    }
  }
  return labels;
}

struct Attribute {
  Handle handle, type;
  std::string name;
  std::int64_t count = 0;
};

Attribute open_attribute(hid_t file, const std::string& file_name, const char* attribute, H5T_class_t kind,
                         const char* expected) {
  Attribute result;
  result.name = fmt::format("{}: attribute {}", file_name, attribute);
  if (H5Aexists(file, attribute) <= 0) {
    throw std::runtime_error(fmt::format("{}: missing, expected {}", result.name, expected));
  }
  result.handle = own(H5Aopen(file, attribute, H5P_DEFAULT), H5Aclose, result.name);
  result.type = own(H5Aget_type(result.handle.get()), H5Tclose, result.name);
  const Handle space = own(H5Aget_space(result.handle.get()), H5Sclose, result.name);
  result.count = H5Sget_simple_extent_npoints(space.get());
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank != 1 || H5Tget_class(result.type.get()) != kind || result.count <= 0 ||
      result.count > std::int64_t{1} << 24) {
    throw std::runtime_error(fmt::format("{}: {} of rank {} with {} elements, expected {}", result.name,
                                         describe_type(result.type.get()), rank, result.count, expected));
  }
  return result;
}

std::vector<std::string> read_variable_strings(const Attribute& attribute) {
  std::vector<char*> pointers(static_cast<std::size_t>(attribute.count));
  hdf5::check(H5Aread(attribute.handle.get(), attribute.type.get(), pointers.data()), attribute.name);
  std::vector<std::string> strings;
  for (const char* text : pointers) strings.emplace_back(text == nullptr ? "" : text);
  const Handle space = own(H5Aget_space(attribute.handle.get()), H5Sclose, attribute.name);
  H5Dvlen_reclaim(attribute.type.get(), space.get(), H5P_DEFAULT, pointers.data());
  return strings;
}

std::vector<std::string> read_classes(hid_t file, const std::string& file_name) {
  const Attribute attribute = open_attribute(file, file_name, "classes", H5T_STRING, "a list of class names");
  if (H5Tis_variable_str(attribute.type.get()) > 0) return read_variable_strings(attribute);
  const std::size_t width = H5Tget_size(attribute.type.get());
  std::vector<char> text(width * static_cast<std::size_t>(attribute.count));
  hdf5::check(H5Aread(attribute.handle.get(), attribute.type.get(), text.data()), attribute.name);
  std::vector<std::string> strings;
  for (std::size_t at = 0; at < text.size(); at += width) {
    strings.emplace_back(text.data() + at, strnlen(text.data() + at, width));
  }
  return strings;
}

std::vector<float> read_floats(hid_t file, const std::string& file_name, const char* name,
                               std::int64_t channels, bool positive) {
  const std::string expected =
      fmt::format("{} finite{} numbers, one a channel", channels, positive ? " positive" : "");
  const Attribute attribute = open_attribute(file, file_name, name, H5T_FLOAT, expected.c_str());
  std::vector<float> values(static_cast<std::size_t>(attribute.count));
  hdf5::check(H5Aread(attribute.handle.get(), H5T_NATIVE_FLOAT, values.data()), attribute.name);
  const bool good = std::all_of(values.begin(), values.end(),
                                [&](float v) { return std::isfinite(v) && (!positive || v > 0); });
  if (attribute.count != channels || !good) {
    throw std::runtime_error(
        fmt::format("{}: [{}], expected {}", attribute.name, fmt::join(values, ", "), expected));
  }
  return values;
}

Handle open_file(const std::string& name) {
  if (!std::ifstream(name)) throw std::runtime_error(fmt::format("{}: {}", name, std::strerror(errno)));
  if (std::filesystem::is_directory(name)) {
    throw std::runtime_error(fmt::format("{}: a folder, expected an HDF5 file", name));
  }
  if (H5Fis_hdf5(name.c_str()) <= 0) {
    throw std::runtime_error(fmt::format("{}: not an HDF5 file (make one with `convoy data convert`)", name));
  }
  return own(H5Fopen(name.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose,
             fmt::format("{}: damaged HDF5 file", name));
}

}  // namespace

struct Store::State {
  std::filesystem::path path;
  std::int64_t resident_bytes = 0;
  StoreInfo info;
  Handle file;
  std::array<std::vector<std::int32_t>, 2> labels;
  std::array<std::int64_t, 2> chunk_images{};
  mutable std::array<std::shared_ptr<const ImageSet>, 2> splits;
};

Store::Store(const std::filesystem::path& file, std::int64_t resident_bytes)
    : state_(std::make_unique<State>()) {
  hdf5::Session session;
  state_->path = file;
  state_->resident_bytes = resident_bytes;
  const std::string name = file.string();
  state_->file = open_file(name);
  const hid_t id = state_->file.get();
  StoreInfo& info = state_->info;
  for (const Split split : {Split::train, Split::test}) {
    const Dataset images = open_images(id, name, split);
    const auto index = static_cast<std::size_t>(split);
    info.size[index] = images.extents[0];
    info.largest_bytes[index] = images.extents[1] * images.extents[2] * images.extents[3];
    const ImageShape shape{images.extents[1], images.extents[2], images.extents[3]};
    if (split == Split::test && shape != info.shape) {
      throw std::runtime_error(fmt::format("{}: images of {}, expected {} as in /train/images", images.name,
                                           shape.to_string(), info.shape.to_string()));
    }
    info.shape = shape;
    state_->chunk_images[index] = images.chunk_rows;
  }
  info.classes = read_classes(id, name);
  for (const Split split : {Split::train, Split::test}) {
    const auto index = static_cast<std::size_t>(split);
    state_->labels[index] = read_labels(id, name, split, info.size[index], info.classes.size());
  }
  info.mean = read_floats(id, name, "mean", info.shape.channels, false);
  info.std = read_floats(id, name, "std", info.shape.channels, true);
}

Store::~Store() = default;

const StoreInfo& Store::info() const { return state_->info; }

const std::vector<std::int32_t>& Store::labels(Split split) const {
  return state_->labels[static_cast<std::size_t>(split)];
}

std::int64_t Store::chunk_images(Split split) const {
  return state_->chunk_images[static_cast<std::size_t>(split)];
}

std::shared_ptr<const ImageSet> Store::split(Split split) const {
  hdf5::Session session;
  auto& images = state_->splits[static_cast<std::size_t>(split)];
  if (images == nullptr) {
    Dataset dataset = open_images(state_->file.get(), state_->path.string(), split);
    images = std::make_shared<StoredImages>(state_->path, std::move(dataset.handle), dataset.name,
                                            state_->info.shape, labels(split), state_->resident_bytes);
  }
  return images;
}

}  // namespace convoy::data
