// Reads the bytes of an HDF5 dataset of uint8, in C order. Datasets that are contiguous, or chunked
// without filters, are read with pread(), without HDF5 and its lock. All others are read through
// HDF5.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/store/hdf5.h"
#include "data/store/pieces.h"

namespace convoy::data {

class DatasetBytes {
 public:
  // `dataset` holds uint8 and belongs to a file that hdf5::open_to_read() opened. Error messages
  // call it `name`. The constructor reads datasets of at most `resident_bytes` bytes into memory.
  DatasetBytes(hdf5::Handle dataset, std::string name, std::int64_t resident_bytes);
  ~DatasetBytes();
  DatasetBytes(const DatasetBytes&) = delete;
  DatasetBytes& operator=(const DatasetBytes&) = delete;

  const std::string& name() const { return name_; }
  std::int64_t size() const { return rows_ * row_bytes_; }
  // Returns `count` bytes from byte `first` on. Both must be multiples of the size of a row, which
  // is one index of the first axis. Bytes that are not in memory are read into `scratch`. The
  // function is thread-safe.
  std::span<const std::uint8_t> read(std::int64_t first, std::int64_t count,
                                     std::span<std::uint8_t> scratch) const;

 private:
  void make_resident(const std::vector<hsize_t>& extents);
  void read_by_hdf5(std::int64_t first, std::int64_t count, std::uint8_t* to) const;
  void read_file(std::int64_t offset, std::int64_t count, std::uint8_t* to) const;

  std::string name_;
  std::int64_t rows_ = 0, row_bytes_ = 1;
  hdf5::Handle dataset_;  // open while bytes must be read through HDF5
  Pieces pieces_;
  std::unique_ptr<std::uint8_t[]> resident_;
};

}  // namespace convoy::data
