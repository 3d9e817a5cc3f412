// A read-only file driver for HDF5. It can also tell where in a file HDF5 would read, so that
// callers can read there without HDF5 and its lock. HDF5 itself computes the place, so user blocks,
// links into other files and every kind of chunk index are handled.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "data/store/hdf5.h"

namespace convoy::data::hdf5 {

// Opens a file for reading, also on a file system without locks. Throws std::runtime_error in one
// line that gives the reason: there is no such file, it is a folder or no HDF5 file, a writer has
// locked it, or HDF5's own reason.
Handle open_to_read(const std::string& file);

struct Place {
  int descriptor;       // descriptor of the open file, which HDF5 owns
  std::int64_t offset;  // offset of the first byte in the file
};

// Finds where a call of HDF5, `read`, reads from a dataset whose file open_to_read() opened. The
// call must read one piece of `bytes` bytes. Nothing is read: the call's buffer keeps its content.
// The result is empty if the call fails or would read several pieces or another number of bytes.
// The caller must hold a Session.
std::optional<Place> place_of(std::int64_t bytes, const std::function<herr_t()>& read);

}  // namespace convoy::data::hdf5
