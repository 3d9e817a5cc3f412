// A read-only file driver for HDF5. It can also tell from where in a file HDF5 would read, so that
// callers can read these bytes without HDF5 and its lock. HDF5 itself computes the offset, so user
// blocks, links into other files and all kinds of chunk indexes work.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "data/store/hdf5.h"

namespace convoy::data::hdf5 {

// Opens a file for reading, even on a file system without locks. Throws std::runtime_error with the
// reason in one line: no such file, a folder, no HDF5 file, a file locked by a writer, or another
// reason that HDF5 gives.
Handle open_to_read(const std::string& file);

struct Place {
  int descriptor;       // descriptor of the open file, which HDF5 owns
  std::int64_t offset;  // offset of the first byte in the file
};

// Returns the place in a file from which `read` would read. The function `read` must call HDF5 to
// read `bytes` bytes of a dataset, in a file that open_to_read() has opened. place_of() calls
// `read`, but nothing is read, and the buffer of the call keeps its content. Returns nothing if the
// call fails, or if HDF5 would read several ranges or another number of bytes. The caller must hold
// a LibraryLock.
std::optional<Place> place_of(std::int64_t bytes, const std::function<herr_t()>& read);

}  // namespace convoy::data::hdf5
