// Other files that hold a dataset's bytes: external raw files and the sources of virtual datasets.
#pragma once

#include <string>

#include "data/store/hdf5.h"

namespace convoy::data {

// Throws std::runtime_error in one line if a file is missing or too short. HDF5 reads zeros or the
// fill value in its place, without an error. `name` stands in messages. Hold a Session.
void require_sources(hid_t dataset, const std::string& name);

}  // namespace convoy::data
