#include "data/store/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "data/store/store_file.h"

namespace convoy::data {
namespace {

using hdf5::check;
using hdf5::Handle;
using hdf5::own;

// The size of an HDF5 chunk in bytes. It is large enough for sequential reads at the speed of the
// disk, and small enough that reading one image wastes little.
constexpr std::int64_t kChunkBytes = 256 * 1024;
constexpr std::size_t kChunkCacheBytes = 16 << 20;
constexpr std::int32_t kUnwritten = -1;

std::array<hsize_t, 4> extents(std::int64_t rows, ImageShape shape) {
  return {static_cast<hsize_t>(rows), static_cast<hsize_t>(shape.height), static_cast<hsize_t>(shape.width),
          static_cast<hsize_t>(shape.channels)};
}

struct SplitState {
  Handle images;
  std::vector<std::int32_t> labels;
};

}  // namespace

struct StoreWriter::State {
  StoreFile file;
  ImageShape shape;
  std::array<SplitState, 2> splits;
  ChannelStatistics statistics;

  void create_images(Split split, std::int64_t rows);
  void transfer(SplitState& split, std::int64_t first, std::int64_t rows, std::uint8_t* read,
                const std::uint8_t* write);
  void close_gaps(Split split);
};

void StoreWriter::State::create_images(Split split, std::int64_t rows) {
  const std::string path = fmt::format("/{}/images", name_of(split));
  const std::string what = fmt::format("{}: {}: cannot create", file.name(), path);
  const auto size = extents(rows, shape);
  const auto chunk = extents(std::clamp<std::int64_t>(kChunkBytes / shape.bytes(), 1, rows), shape);
  const Handle space = own(H5Screate_simple(4, size.data(), nullptr), H5Sclose, what);
  const Handle creation = untimed(H5P_DATASET_CREATE, what);
  check(H5Pset_chunk(creation.get(), 4, chunk.data()), what);
  check(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), what);
  const Handle access = own(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, what);
  check(H5Pset_chunk_cache(access.get(), 12421, kChunkCacheBytes, 1.0), what);
  auto& state = splits[static_cast<std::size_t>(split)];
  state.images = own(H5Dcreate2(file.id(), path.c_str(), H5T_STD_U8LE, space.get(), H5P_DEFAULT,
                                creation.get(), access.get()),
                     H5Dclose, what);
  state.labels.assign(static_cast<std::size_t>(rows), kUnwritten);
}

// Transfers `rows` rows of a split, from row `first` on. Reads them into `read` if it is not null.
// Otherwise writes them from `write`.
void StoreWriter::State::transfer(SplitState& split, std::int64_t first, std::int64_t rows,
                                  std::uint8_t* read, const std::uint8_t* write) {
  const std::string what = file.name() + ": cannot write images";
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

// Removes the rows that were never written: moves the later rows up and shrinks the dataset.
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
  if (kept == 0)
    throw std::runtime_error(fmt::format("{}: no {} images left", file.name(), name_of(split_name)));
  std::erase(split.labels, kUnwritten);
  const auto size = extents(kept, shape);
  if (kept < rows) check(H5Dset_extent(split.images.get(), size.data()), file.name() + ": cannot write");
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
  hdf5::LibraryLock lock;
  state_.reset(new State{StoreFile(destination, std::move(classes)), shape, {}, {}});
  state_->create_images(Split::train, sizes.train);
  state_->create_images(Split::test, sizes.test);
}

StoreWriter::~StoreWriter() = default;

void StoreWriter::write(Split split, std::int64_t first, std::span<const std::uint8_t> images,
                        std::span<const std::int32_t> labels) {
  auto& target = state_->splits[static_cast<std::size_t>(split)];
  const auto rows = static_cast<std::int64_t>(labels.size());
  if (first < 0 || first + rows > static_cast<std::int64_t>(target.labels.size()) ||
      static_cast<std::int64_t>(images.size()) != rows * state_->shape.bytes()) {
    throw std::invalid_argument(fmt::format("StoreWriter::write: rows {} to {} of {} with {} bytes", first,
                                            first + rows, target.labels.size(), images.size()));
  }
  for (const std::int32_t label : labels) state_->file.require_label(label);
  if (rows == 0) return;
  hdf5::LibraryLock lock;
  state_->transfer(target, first, rows, nullptr, images.data());
  std::copy(labels.begin(), labels.end(), target.labels.begin() + first);
  if (split != Split::train) return;
  const auto bytes = static_cast<std::size_t>(state_->shape.bytes());
  for (std::size_t at = 0; at < images.size(); at += bytes)
    state_->statistics.add(ChannelStatistics::of(images.subspan(at, bytes), state_->shape.channels));
}

void StoreWriter::finish() {
  hdf5::LibraryLock lock;
  for (const Split split : {Split::train, Split::test}) {
    state_->close_gaps(split);
    auto& [images, labels] = state_->splits[static_cast<std::size_t>(split)];
    // Flush here: a full disk is detected only when cached chunks are written.
    check(H5Dflush(images.get()), state_->file.name() + ": cannot write images");
    images.reset();
    state_->file.write_vector(split, "labels", H5T_STD_I32LE, H5T_NATIVE_INT32, labels.size(), labels.data());
  }
  state_->file.finish(state_->statistics);
}

}  // namespace convoy::data
