#include "data/store/stored_images.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace convoy::data {

StoredImages::StoredImages(const std::filesystem::path& file, hdf5::Handle dataset, std::string name,
                           ImageShape shape, std::vector<std::int32_t> labels, std::int64_t resident_bytes)
    : name_(std::move(name)), shape_(shape), labels_(std::move(labels)), dataset_(std::move(dataset)) {
  hdf5::Session session;
  const std::int64_t bytes = size() * shape_.bytes();
  if (bytes <= resident_bytes) {
    resident_ = std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(bytes));
    read_rows(0, size(), resident_.get());
    dataset_.reset();
    return;
  }
  descriptor_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw std::runtime_error(fmt::format("{}: {}", file.string(), std::strerror(errno)));
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0) find_places(status.st_size);
  if (!places_.empty()) dataset_.reset();
}

StoredImages::~StoredImages() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

// Leaves places_ empty where images cannot be read without HDF5: compressed, cut by chunks, not allocated.
void StoredImages::find_places(std::int64_t file_bytes) {
  const hid_t id = dataset_.get();
  const hdf5::Handle creation = hdf5::own(H5Dget_create_plist(id), H5Pclose, name_);
  std::vector<std::int64_t> places;
  std::int64_t in_place = size();
  const auto fits = [&](std::int64_t offset, std::int64_t images) {
    return offset >= 0 && offset <= file_bytes - images * shape_.bytes();
  };
  if (H5Pget_layout(creation.get()) == H5D_CHUNKED) {
    std::array<hsize_t, 4> chunk{};
    if (H5Pget_nfilters(creation.get()) != 0 || H5Pget_chunk(creation.get(), 4, chunk.data()) != 4) return;
    if (ImageShape{static_cast<std::int64_t>(chunk[1]), static_cast<std::int64_t>(chunk[2]),
                   static_cast<std::int64_t>(chunk[3])} != shape_) {
      return;
    }
    in_place = static_cast<std::int64_t>(chunk[0]);
    for (std::int64_t first = 0; first < size(); first += in_place) {
      const std::array<hsize_t, 4> at{static_cast<hsize_t>(first), 0, 0, 0};
      unsigned mask = 0;
      haddr_t offset = HADDR_UNDEF;
      hsize_t bytes = 0;
      if (H5Dget_chunk_info_by_coord(id, at.data(), &mask, &offset, &bytes) < 0 || offset == HADDR_UNDEF)
        return;
      places.push_back(static_cast<std::int64_t>(offset));
      if (!fits(places.back(), in_place)) return;
    }
  } else if (const haddr_t offset = H5Dget_offset(id); offset != HADDR_UNDEF) {
    places.push_back(static_cast<std::int64_t>(offset));
    if (!fits(places.back(), in_place)) return;
  }
  places_ = std::move(places);
  images_in_place_ = in_place;
}

void StoredImages::read_rows(std::int64_t first, std::int64_t rows, std::uint8_t* to) const {
  hdf5::Session session;
  const std::array<hsize_t, 4> start{static_cast<hsize_t>(first), 0, 0, 0};
  const std::array<hsize_t, 4> count{static_cast<hsize_t>(rows), static_cast<hsize_t>(shape_.height),
                                     static_cast<hsize_t>(shape_.width),
                                     static_cast<hsize_t>(shape_.channels)};
  const std::string what = name_ + ": cannot read";
  const hdf5::Handle space = hdf5::own(H5Dget_space(dataset_.get()), H5Sclose, what);
  hdf5::check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
              what);
  const hdf5::Handle memory = hdf5::own(H5Screate_simple(4, count.data(), nullptr), H5Sclose, what);
  hdf5::check(H5Dread(dataset_.get(), H5T_NATIVE_UINT8, memory.get(), space.get(), H5P_DEFAULT, to), what);
}

void StoredImages::read_at(std::int64_t offset, std::int64_t bytes, std::uint8_t* to) const {
  for (std::int64_t done = 0; done < bytes;) {
    const ssize_t got =
        ::pread(descriptor_, to + done, static_cast<std::size_t>(bytes - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::runtime_error(fmt::format("{}: cannot read: {}", name_, std::strerror(errno)));
    if (got == 0) throw std::runtime_error(fmt::format("{}: the file ends in the middle of an image", name_));
    done += got;
  }
}

std::span<const std::uint8_t> StoredImages::stored(std::int64_t sample,
                                                   std::span<std::uint8_t> scratch) const {
  const std::int64_t bytes = shape_.bytes();
  const auto count = static_cast<std::size_t>(bytes);
  if (resident_ != nullptr) return {resident_.get() + sample * bytes, count};
  if (places_.empty()) {
    read_rows(sample, 1, scratch.data());
  } else {
    const std::int64_t place = places_[static_cast<std::size_t>(sample / images_in_place_)];
    read_at(place + sample % images_in_place_ * bytes, bytes, scratch.data());
  }
  return scratch.first(count);
}

}  // namespace convoy::data
