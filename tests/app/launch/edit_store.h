// Edits and reads HDF5 files without the program: stores with other class names or other labels,
// and tensors of checkpoints.
#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace convoy::test {

// Writes `to`: a copy of the store `from` in which class i has the name names[i].
inline void rename_classes(const std::string& from, const std::string& to,
                           const std::vector<std::string>& names) {
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
  constexpr std::size_t kWidth = 16;
  std::string text(names.size() * kWidth, '\0');
  for (std::size_t i = 0; i < names.size(); ++i) names[i].copy(text.data() + i * kWidth, kWidth);
  const hid_t file = H5Fopen(to.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, kWidth);
  H5Tset_cset(type, H5T_CSET_UTF8);
  const hsize_t count = names.size();
  const hid_t space = H5Screate_simple(1, &count, nullptr);
  ASSERT_GE(H5Adelete(file, "classes"), 0);
  const hid_t attribute = H5Acreate2(file, "classes", type, space, H5P_DEFAULT, H5P_DEFAULT);
  ASSERT_GE(H5Awrite(attribute, type, text.data()), 0);
  H5Aclose(attribute), H5Sclose(space), H5Tclose(type);
  ASSERT_GE(H5Fclose(file), 0);
}

inline void renumber_labels(const std::string& store, const std::string& split,
                            const std::vector<std::int32_t>& number_of) {
  const hid_t file = H5Fopen(store.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  const hid_t set = H5Dopen2(file, ("/" + split + "/labels").c_str(), H5P_DEFAULT);
  const hid_t space = H5Dget_space(set);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  ASSERT_GE(H5Dread(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels.data()), 0);
  std::ranges::transform(labels, labels.begin(), [&](std::int32_t label) { return number_of[label]; });
  ASSERT_GE(H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels.data()), 0);
  H5Sclose(space), H5Dclose(set);
  ASSERT_GE(H5Fclose(file), 0);
}

// Returns a tensor of a checkpoint in row-major order, or nothing if the file does not have it.
inline std::vector<float> read_floats(const std::string& file_name, const std::string& path) {
  const hid_t file = H5Fopen(file_name.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0 || H5Lexists(file, path.substr(0, path.find('/')).c_str(), H5P_DEFAULT) <= 0) return {};
  const hid_t set = H5Dopen2(file, path.c_str(), H5P_DEFAULT);
  const hid_t space = H5Dget_space(set);
  std::vector<float> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Sclose(space), H5Dclose(set), H5Fclose(file);
  return values;
}

}  // namespace convoy::test
