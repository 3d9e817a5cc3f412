// The HDF5 file into which a store is written. Only code that itself links HDF5 may include this
// header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/atomic_file.h"
#include "data/image_set.h"
#include "data/store/channel_statistics.h"
#include "data/store/hdf5.h"

namespace convoy::data {

// Returns an HDF5 creation property list that turns timestamps off. Thus equal data give equal
// files.
hdf5::Handle untimed(hid_t kind, const std::string& what);

// The HDF5 file of a store during writing. The caller must hold an hdf5::LibraryLock. Every error
// is a std::runtime_error that names the destination.
class StoreFile {
 public:
  // Creates the file with the groups /train and /test, under a temporary name next to its
  // destination. All classes must have different names.
  StoreFile(const std::filesystem::path& destination, std::vector<std::string> classes);

  const std::string& name() const { return name_; }  // name of the destination, for messages
  std::size_t classes() const { return classes_.size(); }
  hid_t id() const { return file_.get(); }

  // Writes `count` values as a dataset of rank 1. `element` is "labels", "offsets" or "encoded".
  void write_vector(Split split, const char* element, hid_t stored_type, hid_t type, std::size_t count,
                    const void* values);
  // Throws std::invalid_argument unless 0 <= label < classes.
  void require_label(std::int32_t label) const;
  // Writes the attributes, closes the file and renames it to its destination. None of its datasets
  // may be open.
  void finish(const ChannelStatistics& statistics);

 private:
  AtomicFile place_;
  std::string name_;
  std::vector<std::string> classes_;
  hdf5::Handle file_;
};

}  // namespace convoy::data
