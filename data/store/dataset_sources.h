// Checks the other files that hold a dataset's bytes: external raw files and the sources of virtual
// datasets.
#pragma once

#include <string>

#include "data/store/hdf5.h"

namespace convoy::data {

// Throws std::runtime_error in one line if such a file is missing or too short: HDF5 would read
// zeros or the fill value without an error. `name` names the dataset. The caller must hold an
// hdf5::Session.
void require_sources(hid_t dataset, const std::string& name);

}  // namespace convoy::data
