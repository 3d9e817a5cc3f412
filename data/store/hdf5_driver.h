// A read-only file driver for HDF5. Besides reading it can say where in a file HDF5 would read, so
// that others can read there without HDF5 and its lock. HDF5 itself computes the place, so
// user blocks, links into other files and every kind of chunk index are handled.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "data/store/hdf5.h"

namespace convoy::data::hdf5 {

// Opens a file for reading. A file system without locks is no obstacle; a lock that a writer holds
// is. Throws std::runtime_error in one line: no such file, a folder, no HDF5 file, or why HDF5
// cannot open it.
Handle open_to_read(const std::string& file);

struct Place {
  int descriptor;       // of the open file; it belongs to HDF5
  std::int64_t offset;  // of the first byte
};

// Finds the place of the one piece of `bytes` bytes that `read`, a call of HDF5, reads from a
// dataset whose file open_to_read() opened. Nothing is read: the call's buffer keeps what it holds.
// The result is empty if the call fails or reads another number of pieces or bytes. Hold a Session.
std::optional<Place> place_of(std::int64_t bytes, const std::function<herr_t()>& read);

}  // namespace convoy::data::hdf5
