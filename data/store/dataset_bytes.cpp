#include "data/store/dataset_bytes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

namespace convoy::data {
namespace {

constexpr std::int64_t kChunksARead = 8192, kBytesARead = 64 << 20;

}  // namespace

DatasetBytes::DatasetBytes(hdf5::Handle dataset, std::string name, std::int64_t resident_bytes)
    : name_(std::move(name)), dataset_(std::move(dataset)) {
  hdf5::LibraryLock lock;
  const hdf5::Handle space = hdf5::own(H5Dget_space(dataset_.get()), H5Sclose, name_);
  std::vector<hsize_t> extents(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.get())));
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  rows_ = static_cast<std::int64_t>(extents[0]);
  for (std::size_t i = 1; i < extents.size(); ++i) row_bytes_ *= static_cast<std::int64_t>(extents[i]);
  pieces_ = find_pieces(dataset_.get(), name_);
  if (size() <= resident_bytes) make_resident(extents);
  const auto& offsets = pieces_.offsets;
  const bool all = std::find(offsets.begin(), offsets.end(), Pieces::kThroughHdf5) == offsets.end();
  if (resident_ != nullptr || (pieces_.descriptor >= 0 && all)) dataset_.reset();
}

// Reads the whole dataset into memory, some rows at a time. HDF5 needs much memory and time to read
// very many chunks in one call.
void DatasetBytes::make_resident(const std::vector<hsize_t>& extents) {
  std::vector<hsize_t> chunk = extents;
  chunk[0] = 1;
  const hdf5::Handle creation = hdf5::own(H5Dget_create_plist(dataset_.get()), H5Pclose, name_);
  if (H5Pget_layout(creation.get()) == H5D_CHUNKED)
    H5Pget_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data());
  const auto chunk_rows = static_cast<std::int64_t>(chunk[0]);
  std::int64_t chunks = 1;  // number of chunks that hold the same rows
  for (std::size_t i = 1; i < chunk.size(); ++i)
    chunks *= static_cast<std::int64_t>((extents[i] + chunk[i] - 1) / chunk[i]);
  const std::int64_t rows =
      chunk_rows *
      std::max<std::int64_t>(1, std::min(kChunksARead / chunks, kBytesARead / (chunk_rows * row_bytes_)));
  auto resident = std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(size()));
  for (std::int64_t first = 0; first < rows_; first += rows) {
    const auto count = static_cast<std::size_t>(std::min(rows, rows_ - first) * row_bytes_);
    read(first * row_bytes_, static_cast<std::int64_t>(count), {resident.get() + first * row_bytes_, count});
  }
  resident_ = std::move(resident);
}

DatasetBytes::~DatasetBytes() {
  if (pieces_.descriptor >= 0) ::close(pieces_.descriptor);
}

void DatasetBytes::read_by_hdf5(std::int64_t first, std::int64_t count, std::uint8_t* to) const {
  hdf5::LibraryLock lock;
  const std::string what = name_ + ": cannot read";
  const hdf5::Handle space = hdf5::own(H5Dget_space(dataset_.get()), H5Sclose, what);
  std::vector<hsize_t> extents(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.get())));
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  std::vector<hsize_t> start(extents.size());
  start[0] = static_cast<hsize_t>(first / row_bytes_);
  extents[0] = static_cast<hsize_t>(count / row_bytes_);
  hdf5::check(
      H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, extents.data(), nullptr), what);
  const auto bytes = static_cast<hsize_t>(count);
  const hdf5::Handle memory = hdf5::own(H5Screate_simple(1, &bytes, nullptr), H5Sclose, what);
  hdf5::check(H5Dread(dataset_.get(), H5T_NATIVE_UINT8, memory.get(), space.get(), H5P_DEFAULT, to), what);
}

void DatasetBytes::read_file(std::int64_t offset, std::int64_t count, std::uint8_t* to) const {
  for (std::int64_t done = 0; done < count;) {
    const ssize_t got =
        ::pread(pieces_.descriptor, to + done, static_cast<std::size_t>(count - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::runtime_error(fmt::format("{}: cannot read: {}", name_, std::strerror(errno)));
    if (got == 0) throw std::runtime_error(fmt::format("{}: the file ends in the middle of an image", name_));
    done += got;
  }
}

std::span<const std::uint8_t> DatasetBytes::read(std::int64_t first, std::int64_t count,
                                                 std::span<std::uint8_t> scratch) const {
  if (resident_ != nullptr) return {resident_.get() + first, static_cast<std::size_t>(count)};
  if (static_cast<std::int64_t>(scratch.size()) < count) {
    throw std::invalid_argument(
        fmt::format("{}: room for {} bytes, expected {}", name_, scratch.size(), count));
  }
  if (pieces_.descriptor < 0) {
    read_by_hdf5(first, count, scratch.data());
    return scratch.first(static_cast<std::size_t>(count));
  }
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t at = first + done, piece = at / pieces_.bytes, within = at % pieces_.bytes;
    const std::int64_t offset = pieces_.offsets[static_cast<std::size_t>(piece)];
    // Extend this read to the next pieces (chunks) as long as they are adjacent in the file. If
    // this piece must be read through HDF5, extend the read as long as the next ones must be, too.
    std::int64_t end = (piece + 1) * pieces_.bytes;
    for (; end < first + count && end / pieces_.bytes - piece < kChunksARead; end += pieces_.bytes) {
      const std::int64_t next = pieces_.offsets[static_cast<std::size_t>(end / pieces_.bytes)];
      if (next != (offset == Pieces::kThroughHdf5 ? offset : offset + end - piece * pieces_.bytes)) break;
    }
    const std::int64_t bytes = std::min(first + count, end) - at;
    if (offset == Pieces::kThroughHdf5) {
      read_by_hdf5(at, bytes, scratch.data() + done);
    } else {
      read_file(offset + within, bytes, scratch.data() + done);
    }
    done += bytes;
  }
  return scratch.first(static_cast<std::size_t>(count));
}

}  // namespace convoy::data
