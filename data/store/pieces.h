// Finds where the data of a dataset lie in its file, if they are stored unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/store/hdf5.h"

namespace convoy::data {

// The pieces of a dataset's bytes, equally long and in C order: its chunks, or the whole dataset as
// one piece.
struct Pieces {
  static constexpr std::int64_t kThroughHdf5 = -1;
  // Descriptor of the file, which the caller closes; -1 if no piece can be read there.
  int descriptor = -1;
  std::int64_t bytes = 0;  // bytes per piece; the last may reach beyond the dataset
  // For each piece: its offset in the file; kThroughHdf5 if the chunk was never written.
  std::vector<std::int64_t> offsets;
};

// Finds the pieces of `dataset`, which holds uint8 and belongs to a file that hdf5::open_to_read()
// opened. There are none if HDF5 changes the data on the way (filters), if chunks divide a row (one
// index of the first axis), if the data are in several files or in the object's header, or if there
// are more than 16 million chunks. The caller must hold an hdf5::Session.
Pieces find_pieces(hid_t dataset, const std::string& name);

}  // namespace convoy::data
