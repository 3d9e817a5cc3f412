#include "data/store/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "data/atomic_file.h"
#include "data/store/hdf5.h"

namespace convoy::data {
namespace {

using hdf5::check;
using hdf5::Handle;
using hdf5::own;

// Large enough for sequential reads at disk speed, small enough to read one image without much waste.
constexpr std::int64_t kChunkBytes = 256 * 1024;
constexpr std::size_t kChunkCacheBytes = 64 << 20;
constexpr std::int32_t kUnwritten = -1;

std::array<hsize_t, 4> extents(std::int64_t rows, ImageShape shape) {
  return {static_cast<hsize_t>(rows), static_cast<hsize_t>(shape.height), static_cast<hsize_t>(shape.width),
          static_cast<hsize_t>(shape.channels)};
}

// A creation property list without timestamps: equal data give equal files.
Handle untimed(hid_t kind, const std::string& what) {
  Handle list = own(H5Pcreate(kind), H5Pclose, what);
  check(H5Pset_obj_track_times(list.get(), false), what);
  return list;
}

void write_attribute(hid_t file, const char* name, hid_t type, hsize_t count, const void* values,
                     const std::string& path) {
  const std::string what = fmt::format("{}: attribute {}: cannot write", path, name);
  const Handle space = own(H5Screate_simple(1, &count, nullptr), H5Sclose, what);
  const Handle attribute =
      own(H5Acreate2(file, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose, what);
  check(H5Awrite(attribute.get(), type, values), what);
}

// Of fixed length: HDF5 keeps strings of variable length in a heap without checksums, and reading a damaged one
// crashes it.
void write_strings(hid_t file, const char* name, const std::vector<std::string>& values,
                   const std::string& path) {
  std::size_t width = 1;
  for (const auto& value : values) width = std::max(width, value.size());
  std::string text;
  for (const auto& value : values) {
    text += value;
    text.resize(text.size() + width - value.size(), '\0');
  }
  const Handle type = own(H5Tcopy(H5T_C_S1), H5Tclose, path);
  check(H5Tset_size(type.get(), width), path);
  check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), path);
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), path);
  write_attribute(file, name, type.get(), values.size(), text.data(), path);
}

struct SplitState {
  Handle images;
  std::vector<std::int32_t> labels;
};

}  // namespace

struct StoreWriter::State {
  AtomicFile place;
  std::string name;  // of the destination, for messages
  ImageShape shape;
  std::vector<std::string> classes;
  Handle file;
  std::array<SplitState, 2> splits;
  std::vector<std::uint64_t> sum, squares;  // per channel over the training images; exact, so order is free

  State(const std::filesystem::path& destination, ImageShape image_shape, std::vector<std::string> names)
      : place(destination),
        name(destination.string()),
        shape(image_shape),
        classes(std::move(names)),
        sum(static_cast<std::size_t>(shape.channels)),
        squares(static_cast<std::size_t>(shape.channels)) {}

  void create_file();
  void create_split(Split split, std::int64_t rows);
  void transfer(SplitState& split, std::int64_t first, std::int64_t rows, std::uint8_t* read,
                const std::uint8_t* write);
  void accumulate(std::span<const std::uint8_t> images);
  void close_gaps(Split split);
  void write_labels(Split split);
  void write_statistics();
};

void StoreWriter::State::create_file() {
  // HDF5 words a file that cannot be created badly; the system says it in a line.
  const int descriptor = ::open(place.path().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    throw std::runtime_error(fmt::format("{}: cannot create: {}", name, std::strerror(errno)));
  }
  ::close(descriptor);
  const std::string what = name + ": cannot create";
  const Handle creation = untimed(H5P_FILE_CREATE, what);
  const Handle access = own(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, what);
  // Since 1.10 everything but the data has a checksum, so that damage is an error and not a crash.
  check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_LATEST), what);
  file = own(H5Fcreate(place.path().c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), H5Fclose, what);
}

void StoreWriter::State::create_split(Split split, std::int64_t rows) {
  const std::string what = fmt::format("{}: /{}: cannot create", name, name_of(split));
  const Handle group_creation = untimed(H5P_GROUP_CREATE, what);
  const Handle group = own(
      H5Gcreate2(file.get(), name_of(split), H5P_DEFAULT, group_creation.get(), H5P_DEFAULT), H5Gclose, what);
  const auto size = extents(rows, shape);
  const auto chunk = extents(std::clamp<std::int64_t>(kChunkBytes / shape.bytes(), 1, rows), shape);
  const Handle space = own(H5Screate_simple(4, size.data(), nullptr), H5Sclose, what);
  const Handle creation = untimed(H5P_DATASET_CREATE, what);
  check(H5Pset_chunk(creation.get(), 4, chunk.data()), what);
  check(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), what);
  const Handle access = own(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, what);
  check(H5Pset_chunk_cache(access.get(), 12421, kChunkCacheBytes, 1.0), what);
  auto& state = splits[static_cast<std::size_t>(split)];
  state.images = own(
      H5Dcreate2(group.get(), "images", H5T_STD_U8LE, space.get(), H5P_DEFAULT, creation.get(), access.get()),
      H5Dclose, what);
  state.labels.assign(static_cast<std::size_t>(rows), kUnwritten);
}

// Reads rows into `read` where it is given, else writes them from `write`.
void StoreWriter::State::transfer(SplitState& split, std::int64_t first, std::int64_t rows,
                                  std::uint8_t* read, const std::uint8_t* write) {
  const std::string what = name + ": cannot write images";
  const auto count = extents(rows, shape);
  const std::array<hsize_t, 4> start{static_cast<hsize_t>(first), 0, 0, 0};
  const Handle space = own(H5Dget_space(split.images.get()), H5Sclose, what);
  check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr), what);
  const Handle memory = own(H5Screate_simple(4, count.data(), nullptr), H5Sclose, what);
  const hid_t id = split.images.get();
  check(read != nullptr ? H5Dread(id, H5T_NATIVE_UINT8, memory.get(), space.get(), H5P_DEFAULT, read)
                        : H5Dwrite(id, H5T_NATIVE_UINT8, memory.get(), space.get(), H5P_DEFAULT, write),
        what);
}

void StoreWriter::State::accumulate(std::span<const std::uint8_t> images) {
  const std::size_t channels = sum.size();
  for (std::size_t c = 0; c < channels; ++c) {
    std::uint64_t total = 0, total_squares = 0;
    for (std::size_t i = c; i < images.size(); i += channels) {
      const std::uint64_t value = images[i];
      total += value;
      total_squares += value * value;
    }
    sum[c] += total;
    squares[c] += total_squares;
  }
}

// Moves every run of written rows down to where the run before it ends, and cuts the rest off.
void StoreWriter::State::close_gaps(Split split_name) {
  SplitState& split = splits[static_cast<std::size_t>(split_name)];
  const auto rows = static_cast<std::int64_t>(split.labels.size());
  const std::int64_t block = std::max<std::int64_t>(1, (16 << 20) / shape.bytes());
  std::vector<std::uint8_t> buffer;
  std::int64_t kept = 0;
  for (std::int64_t row = 0; row < rows;) {
    std::int64_t end = row;
    const auto written = [&](std::int64_t i) {
      return split.labels[static_cast<std::size_t>(i)] != kUnwritten;
    };
    while (end < rows && end - row < block && written(end)) ++end;
    if (end > row && kept < row) {
      buffer.resize(static_cast<std::size_t>((end - row) * shape.bytes()));
      transfer(split, row, end - row, buffer.data(), nullptr);
      transfer(split, kept, end - row, nullptr, buffer.data());
    }
    kept += end - row;
    row = end > row ? end : row + 1;
  }
  if (kept == 0) throw std::runtime_error(fmt::format("{}: no {} images left", name, name_of(split_name)));
  std::erase(split.labels, kUnwritten);
  const auto size = extents(kept, shape);
  if (kept < rows) check(H5Dset_extent(split.images.get(), size.data()), name + ": cannot write");
}

void StoreWriter::State::write_labels(Split split) {
  const std::string what = fmt::format("{}: /{}/labels: cannot write", name, name_of(split));
  const auto& labels = splits[static_cast<std::size_t>(split)].labels;
  const hsize_t count = labels.size();
  const Handle group = own(H5Gopen2(file.get(), name_of(split), H5P_DEFAULT), H5Gclose, what);
  const Handle space = own(H5Screate_simple(1, &count, nullptr), H5Sclose, what);
  const Handle creation = untimed(H5P_DATASET_CREATE, what);
  const Handle dataset = own(
      H5Dcreate2(group.get(), "labels", H5T_STD_I32LE, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
      H5Dclose, what);
  check(H5Dwrite(dataset.get(), H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels.data()), what);
}

void StoreWriter::State::write_statistics() {
  const double pixels = static_cast<double>(splits[0].labels.size()) * static_cast<double>(shape.height) *
                        static_cast<double>(shape.width);
  std::vector<float> mean, deviation;
  for (std::size_t c = 0; c < sum.size(); ++c) {
    const double average = static_cast<double>(sum[c]) / pixels;
    const double variance = static_cast<double>(squares[c]) / pixels - average * average;
    mean.push_back(static_cast<float>(average / 255.0));
    // A constant channel would be divided by zero; one grey level is the least that a channel can vary by.
    deviation.push_back(static_cast<float>(std::max(std::sqrt(std::max(variance, 0.0)), 1.0) / 255.0));
  }
  write_attribute(file.get(), "mean", H5T_NATIVE_FLOAT, mean.size(), mean.data(), name);
  write_attribute(file.get(), "std", H5T_NATIVE_FLOAT, deviation.size(), deviation.data(), name);
  write_strings(file.get(), "classes", classes, name);
}

StoreWriter::StoreWriter(const std::filesystem::path& destination, ImageShape shape,
                         std::vector<std::string> classes, Sizes sizes) {
  if (shape.bytes() <= 0 || shape.height <= 0 || shape.width <= 0 || classes.empty() || sizes.train <= 0 ||
      sizes.test <= 0) {
    throw std::invalid_argument(
        fmt::format("{}: a store needs images, classes and samples in both splits, got {} images of {}, {} "
                    "classes and {} test images",
                    destination.string(), sizes.train, shape.to_string(), classes.size(), sizes.test));
  }
  hdf5::Session session;
  state_ = std::make_unique<State>(destination, shape, std::move(classes));
  state_->create_file();
  state_->create_split(Split::train, sizes.train);
  state_->create_split(Split::test, sizes.test);
}

StoreWriter::~StoreWriter() = default;

void StoreWriter::write(Split split, std::int64_t first, std::span<const std::uint8_t> images,
                        std::span<const std::int32_t> labels) {
  auto& target = state_->splits[static_cast<std::size_t>(split)];
  const auto rows = static_cast<std::int64_t>(labels.size());
  const auto classes = static_cast<std::int32_t>(state_->classes.size());
  if (first < 0 || first + rows > static_cast<std::int64_t>(target.labels.size()) ||
      static_cast<std::int64_t>(images.size()) != rows * state_->shape.bytes()) {
    throw std::invalid_argument(fmt::format("StoreWriter::write: rows {} to {} of {} with {} bytes", first,
                                            first + rows, target.labels.size(), images.size()));
  }
  for (const std::int32_t label : labels) {
    if (label < 0 || label >= classes) {
      throw std::invalid_argument(
          fmt::format("StoreWriter::write: label {}, expected 0 to {}", label, classes - 1));
    }
  }
  if (rows == 0) return;
  hdf5::Session session;
  state_->transfer(target, first, rows, nullptr, images.data());
  std::copy(labels.begin(), labels.end(), target.labels.begin() + first);
  if (split == Split::train) state_->accumulate(images);
}

void StoreWriter::finish() {
  hdf5::Session session;
  for (const Split split : {Split::train, Split::test}) {
    state_->close_gaps(split);
    state_->write_labels(split);
  }
  state_->write_statistics();
  // A full disk shows when cached chunks are written out: flush where failing can still be reported.
  check(H5Fflush(state_->file.get(), H5F_SCOPE_LOCAL), state_->name + ": cannot write");
  for (auto& split : state_->splits) split.images.reset();
  if (!state_->file.reset()) throw std::runtime_error(state_->name + ": cannot close: " + hdf5::last_error());
  state_->place.commit();
}

}  // namespace convoy::data
