// Finds the places of a dataset's data in its file, if they lie there as they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/store/hdf5.h"

namespace convoy::data {

// Equally long pieces of a dataset's bytes in C order: its chunks, or all of it in one.
struct Pieces {
  static constexpr std::int64_t kThroughHdf5 = -1;
  int descriptor = -1;                // of the file, which the caller closes; -1: no piece can be read there
  std::int64_t bytes = 0;             // of a piece; the last may reach beyond the dataset
  std::vector<std::int64_t> offsets;  // or kThroughHdf5: a chunk that was never written
};

// `dataset`, of uint8, belongs to a file that hdf5::open_to_read() opened. There are no pieces if
// HDF5 changes the data on the way (filters), if chunks cut what one index of the first axis holds,
// if the data are in several files or in the object's header, or if there are more than 16 million
// chunks. Hold a Session.
Pieces find_pieces(hid_t dataset, const std::string& name);

}  // namespace convoy::data
