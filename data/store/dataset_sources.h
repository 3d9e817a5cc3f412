// Checks the files that hold a dataset's bytes outside its HDF5 file: external raw files and the
// source files of virtual datasets.
#pragma once

#include <string>

#include "data/store/hdf5.h"

namespace convoy::data {

// Throws std::runtime_error in one line if such a file is missing or too short. HDF5 itself would
// return zeros or the fill value without an error. `name` is the dataset's name for the message.
// The caller must hold an hdf5::LibraryLock.
void require_sources(hid_t dataset, const std::string& name);

}  // namespace convoy::data
