#include "data/store/pieces.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "data/store/hdf5_driver.h"

namespace convoy::data {
namespace {

using hdf5::Handle;
using hdf5::own;

constexpr std::size_t kMostPieces = std::size_t{1} << 24;  // 16 million offsets take 128 MiB of memory

std::int64_t product(const std::vector<hsize_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1},
                         [](std::int64_t a, hsize_t b) { return a * static_cast<std::int64_t>(b); });
}

class Finder {
 public:
  Finder(hid_t dataset, const std::string& name)
      : dataset_(dataset),
        name_(name),
        space_(own(H5Dget_space(dataset), H5Sclose, name)),
        extents_(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space_.get()))),
        piece_(extents_.size()) {
    H5Sget_simple_extent_dims(space_.get(), extents_.data(), nullptr);
  }

  Pieces find() {
    const Handle creation = own(H5Dget_create_plist(dataset_), H5Pclose, name_);
    const Handle type = own(H5Dget_type(dataset_), H5Tclose, name_);
    if (H5Tequal(type.get(), H5T_STD_U8LE) > 0 || H5Tequal(type.get(), H5T_STD_U8BE) > 0) {
      if (H5Pget_layout(creation.get()) == H5D_CHUNKED) {
        find_chunks(creation.get());
      } else if (H5Pget_layout(creation.get()) == H5D_CONTIGUOUS) {
        find_whole();
      }
    }
    return std::move(pieces_);
  }

 private:
  void find_chunks(hid_t creation) {
    if (H5Pget_nfilters(creation) != 0 ||
        H5Pget_chunk(creation, static_cast<int>(piece_.size()), piece_.data()) < 0 ||
        !std::equal(piece_.begin() + 1, piece_.end(), extents_.begin() + 1)) {
      return;
    }
    const std::size_t count = (extents_[0] + piece_[0] - 1) / piece_[0];
    if (count > kMostPieces) return;
    pieces_.bytes = product(piece_);
    pieces_.offsets.reserve(count);
    // H5Dread_chunk() needs a buffer of one chunk, although nothing is written into it here.
    const auto room = std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(pieces_.bytes));
    std::vector<hsize_t> first(extents_.size());
    // Visit the chunks in order. HDF5 then finds a chunk in less than a microsecond, in every kind
    // of chunk index.
    for (; first[0] < extents_[0]; first[0] += piece_[0]) {
      add(place(pieces_.bytes, [&] {
        unsigned filters = 0;
#if H5_VERSION_GE(2, 0, 0)
        auto bytes = static_cast<std::size_t>(pieces_.bytes);
        return H5Dread_chunk2(dataset_, H5P_DEFAULT, first.data(), &filters, room.get(), &bytes);
#else
        return H5Dread_chunk(dataset_, H5P_DEFAULT, first.data(), &filters, room.get());
#endif
      }));
    }
  }

  // Finds the data of a contiguous dataset. They are one piece if the offsets of the first and the
  // last byte in the file differ by the size of the data.
  void find_whole() {
    pieces_.bytes = product(extents_);
    std::vector<hsize_t> last = extents_;
    for (hsize_t& index : last) --index;
    const std::int64_t start = place_of_element(std::vector<hsize_t>(extents_.size()));
    const bool whole = start >= 0 && place_of_element(last) == start + pieces_.bytes - 1;
    add(whole ? start : Pieces::kThroughHdf5);
  }

  std::int64_t place_of_element(const std::vector<hsize_t>& at) {
    if (H5Sselect_elements(space_.get(), H5S_SELECT_SET, 1, at.data()) < 0) return Pieces::kThroughHdf5;
    const hsize_t one = 1;
    const Handle memory = own(H5Screate_simple(1, &one, nullptr), H5Sclose, name_);
    std::uint8_t room = 0;
    return place(1, [&] {
      return H5Dread(dataset_, H5T_NATIVE_UINT8, memory.get(), space_.get(), H5P_DEFAULT, &room);
    });
  }

  std::int64_t place(std::int64_t bytes, const std::function<herr_t()>& read) {
    const auto found = hdf5::place_of(bytes, read);
    if (!found) return Pieces::kThroughHdf5;
    if (pieces_.descriptor < 0) pieces_.descriptor = ::fcntl(found->descriptor, F_DUPFD_CLOEXEC, 0);
    if (pieces_.descriptor < 0) throw std::runtime_error(name_ + ": cannot read: " + std::strerror(errno));
    return found->offset;
  }

  void add(std::int64_t offset) { pieces_.offsets.push_back(offset); }

  hid_t dataset_;
  const std::string& name_;
  Handle space_;
  std::vector<hsize_t> extents_, piece_;
  Pieces pieces_;
};

}  // namespace

Pieces find_pieces(hid_t dataset, const std::string& name) { return Finder(dataset, name).find(); }

}  // namespace convoy::data
