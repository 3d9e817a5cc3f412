// Reads and writes the HDF5 objects of checkpoints: attributes, and groups of tensors. Only
// app/training uses this header. Callers must hold a data::hdf5::LibraryLock, without which HDF5 is
// not safe among threads. Only constructor and destructor of CheckpointImage take it themselves.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "app/training/checkpoint/checkpoint.h"
#include "data/store/hdf5.h"

namespace convoy::app {

// Reads and writes the attributes of one HDF5 object. Errors name the file and the attribute.
class Attributes {
 public:
  Attributes(std::string file, hid_t object) : file_(std::move(file)), object_(object) {}

  void write_text(const std::string& name, const std::string& text);
  template <typename Number>
  void write_number(const std::string& name, Number value);
  template <typename Number>
  void write_array(const std::string& name, const std::vector<Number>& values);

  std::string read_text(const std::string& name) const;
  template <typename Number>
  Number read_number(const std::string& name) const;
  template <typename Number>
  std::vector<Number> read_array(const std::string& name) const;
  kernels::Shape read_shape(const std::string& name) const;

 private:
  std::string what(const std::string& name) const { return file_ + ": attribute '" + name + "'"; }
  void write(const std::string& name, hid_t stored, hid_t space, hid_t in_memory, const void* values);
  data::hdf5::Handle open(const std::string& name) const;

  std::string file_;
  hid_t object_;
};

// Builds an HDF5 file in memory.
class CheckpointImage {
 public:
  // `file` appears only in messages. The constructor reserves memory for a state of the size of
  // `state`.
  CheckpointImage(std::string file, const CheckpointState& state);
  ~CheckpointImage();
  CheckpointImage(const CheckpointImage&) = delete;
  CheckpointImage& operator=(const CheckpointImage&) = delete;
  Attributes& root() { return root_; }
  void write_tensors(const std::string& group, const std::vector<SavedTensor>& tensors);
  void write_texts(const std::string& dataset, const std::vector<std::string>& texts);
  // Returns the bytes of the file, which live as long as this object. The first kSealBytes of them
  // are left for the seal (sealed_file.h).
  std::span<const std::byte> finish();

 private:
  std::string file_name_;
  data::hdf5::Handle file_;
  Attributes root_;
};

class CheckpointReader {
 public:
  explicit CheckpointReader(std::string file);
  const Attributes& root() const { return root_; }
  bool has(const std::string& object) const;
  std::vector<SavedTensor> read_tensors(const std::string& group) const;
  std::vector<std::string> read_texts(const std::string& dataset) const;

 private:
  SavedTensor read_tensor(hid_t group, const std::string& path, std::string name) const;

  std::string file_name_;
  data::hdf5::Handle file_;
  Attributes root_;
};

}  // namespace convoy::app
