// Finds the file offsets of a dataset's bytes, if HDF5 stores the bytes unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/store/hdf5.h"

namespace convoy::data {

// The bytes of a dataset as pieces of equal size, in C order. A piece is a chunk, or the whole
// dataset if it is contiguous.
struct Pieces {
  static constexpr std::int64_t kThroughHdf5 = -1;
  // Descriptor of the file. The caller closes it. -1 if all pieces must be read through HDF5.
  int descriptor = -1;
  std::int64_t bytes = 0;  // bytes per piece; the last may reach beyond the dataset
  // The file offset of each piece. It is kThroughHdf5 if the piece must be read through HDF5, for
  // example because the chunk was never written.
  std::vector<std::int64_t> offsets;
};

// Finds the pieces of `dataset`, which holds uint8 and belongs to a file that hdf5::open_to_read()
// opened. The result has no pieces if the dataset has filters, if a chunk contains only a part of a
// row (one index of the first axis), if the data are in several files or in the object's header, or
// if there are more than 16 million chunks. The caller must hold an hdf5::LibraryLock.
Pieces find_pieces(hid_t dataset, const std::string& name);

}  // namespace convoy::data
