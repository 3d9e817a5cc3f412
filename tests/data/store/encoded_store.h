// Writes stores of encoded images through HDF5 alone, as other programs do.
#pragma once

#include <string>
#include <vector>

#include "data/store/hdf5.h"
#include "tests/data/support.h"

namespace convoy::data::testing {

template <typename T>
void write_dataset(hid_t file, const std::string& path, hid_t stored_as, hid_t type,
                   const std::vector<T>& values, hsize_t chunk = 0) {
  if (H5Lexists(file, path.c_str(), H5P_DEFAULT) > 0) H5Ldelete(file, path.c_str(), H5P_DEFAULT);
  const hsize_t count = values.size();
  const hdf5::Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
  const hdf5::Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  if (chunk > 0) H5Pset_chunk(creation.get(), 1, &chunk);
  const hdf5::Handle made(
      H5Dcreate2(file, path.c_str(), stored_as, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
      H5Dclose);
  ASSERT_TRUE(made) << path;
  ASSERT_GE(H5Dwrite(made.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << path;
}

inline void write_bytes_dataset(hid_t file, const std::string& path, const Bytes& bytes, hsize_t chunk = 0) {
  write_dataset(file, path, H5T_STD_U8LE, H5T_NATIVE_UINT8, bytes, chunk);
}

inline void write_offsets(hid_t file, const std::string& path, const std::vector<std::int64_t>& offsets) {
  write_dataset(file, path, H5T_STD_I64LE, H5T_NATIVE_INT64, offsets);
}

// Replaces the pixels in the open store `file` by encoded images. Keeps the attributes classes,
// mean and std.
inline void encode_split(hid_t file, Split split, const std::vector<Bytes>& images, hsize_t chunk = 0) {
  const std::string group = std::string("/") + name_of(split);
  if (H5Lexists(file, (group + "/images").c_str(), H5P_DEFAULT) > 0)
    H5Ldelete(file, (group + "/images").c_str(), H5P_DEFAULT);
  Bytes encoded;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> labels;
  for (const Bytes& image : images) {
    encoded.insert(encoded.end(), image.begin(), image.end());
    offsets.push_back(static_cast<std::int64_t>(encoded.size()));
    labels.push_back(static_cast<std::int32_t>(labels.size() % 4));
  }
  write_bytes_dataset(file, group + "/encoded", encoded, chunk);
  write_offsets(file, group + "/offsets", offsets);
  write_dataset(file, group + "/labels", H5T_STD_I32LE, H5T_NATIVE_INT32, labels);
}

}  // namespace convoy::data::testing
