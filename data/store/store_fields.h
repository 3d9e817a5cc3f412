// Reads and checks the datasets and attributes of a store. Errors are std::runtime_error with one
// line that names file and object, what was found and what was expected. The caller must hold an
// hdf5::LibraryLock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/store/hdf5.h"

namespace convoy::data {

struct Hdf5Dataset {
  hdf5::Handle handle;
  std::string name;  // for example "FILE: /train/images"
  std::vector<std::int64_t> extents;
  std::int64_t chunk_rows = 0;  // rows per chunk; 0 if the dataset is contiguous
};

struct ExpectedDataset {
  bool bytes;  // true: the elements must be uint8; false: integers of any size
  const char* axes;
  std::size_t rank;
};
inline constexpr ExpectedDataset kImages{true, "[N, H, W, C]", 4}, kEncoded{true, "[bytes]", 1},
    kLabels{false, "[N]", 1}, kOffsets{false, "[N + 1]", 1};

// Returns whether the object exists. Follows links of every kind.
bool exists(hid_t file, const std::string& path);
Hdf5Dataset open_dataset(hid_t file, const std::string& file_name, const std::string& path,
                         const ExpectedDataset& expected);
// Reads a dataset of rank 1. A value outside the range of int64 becomes the nearest value in it.
std::vector<std::int64_t> read_integers(const Hdf5Dataset& dataset);

std::vector<std::string> read_classes(hid_t file, const std::string& file_name);
// Reads the attribute `mean` or `std`: one number of any float or integer type per channel, for
// pixel values from 0 to 1. `channels` is the expected number of channels; 0 accepts 1 and 3.
std::vector<float> read_statistics(hid_t file, const std::string& file_name, const char* name,
                                   std::int64_t channels);
// Returns how many values an attribute has; 0 if it is missing.
std::int64_t attribute_count(hid_t file, const char* name);

}  // namespace convoy::data
