// Helpers of the converters' tests: they write folders and archives with links, and read stores of
// encoded images with HDF5 alone.
#pragma once

#include <hdf5.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/convert/convert.h"
#include "data/store/store.h"
#include "tests/data/support.h"

namespace convoy::data::testing {

// Returns the stored bytes of a sample.
inline Bytes image_of(const Store& store, Split split, std::int64_t sample) {
  const auto set = store.split(split);
  Bytes scratch(static_cast<std::size_t>(set->shape().bytes()));
  const auto image = set->stored(sample, scratch);
  return {image.begin(), image.end()};
}

struct TarEntry {
  std::string name;
  Bytes content = {};
  enum class Kind : std::uint8_t { file, folder, symbolic, hard } kind = Kind::file;
  std::string target = {};
};

inline void write_archive(const std::filesystem::path& file, const std::vector<TarEntry>& entries,
                          bool zip = false) {
  archive* writer = archive_write_new();
  zip ? archive_write_set_format_zip(writer) : archive_write_set_format_pax_restricted(writer);
  ASSERT_EQ(archive_write_open_filename(writer, file.c_str()), ARCHIVE_OK) << archive_error_string(writer);
  for (const auto& [name, content, kind, target] : entries) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_perm(entry, 0755);
    archive_entry_set_filetype(entry, kind == TarEntry::Kind::folder     ? AE_IFDIR
                                      : kind == TarEntry::Kind::symbolic ? AE_IFLNK
                                                                         : AE_IFREG);
    if (kind == TarEntry::Kind::symbolic) archive_entry_set_symlink(entry, target.c_str());
    if (kind == TarEntry::Kind::hard) archive_entry_set_hardlink(entry, target.c_str());
    if (kind == TarEntry::Kind::file) archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    // libarchive warns of names that are not ASCII, and writes their bytes.
    ASSERT_GE(archive_write_header(writer, entry), ARCHIVE_WARN) << archive_error_string(writer);
    if (kind == TarEntry::Kind::file) archive_write_data(writer, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
}

// Writes the entries of an archive as files, folders and links below `root`.
inline void write_tree(const std::filesystem::path& root, const std::vector<TarEntry>& entries) {
  for (const auto& [name, content, kind, target] : entries) {
    const auto path = root / name;
    std::filesystem::create_directories(path.parent_path());
    if (kind == TarEntry::Kind::file) write_bytes(path, content);
    if (kind == TarEntry::Kind::folder) std::filesystem::create_directories(path);
    if (kind == TarEntry::Kind::symbolic) std::filesystem::create_symlink(target, path);
    if (kind == TarEntry::Kind::hard) std::filesystem::create_hard_link(root / target, path);
  }
}

inline Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// Returns a PNG file whose pixels depend on `tone`.
inline Bytes png(int tone, std::int64_t height = 8, std::int64_t width = 10) {
  return encode_png(smooth_image(height, width, 3, tone));
}

// The content of a store of encoded images, read with HDF5 alone.
struct EncodedStore {
  struct SplitContent {
    std::vector<Bytes> files;
    std::vector<std::int32_t> labels;
  };
  SplitContent train, test;
  std::vector<float> mean, std;

  explicit EncodedStore(const std::filesystem::path& path) {
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0) throw std::runtime_error("no store: " + path.string());
    for (const bool is_train : {true, false}) {
      const std::string group = is_train ? "/train/" : "/test/";
      SplitContent& split = is_train ? train : test;
      const auto offsets = read<std::int64_t>(file, group + "offsets", H5T_NATIVE_INT64);
      const auto bytes = read<std::uint8_t>(file, group + "encoded", H5T_NATIVE_UINT8);
      split.labels = read<std::int32_t>(file, group + "labels", H5T_NATIVE_INT32);
      for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
        split.files.emplace_back(bytes.begin() + offsets[i], bytes.begin() + offsets[i + 1]);
      EXPECT_EQ(offsets.back(), static_cast<std::int64_t>(bytes.size()));
      EXPECT_EQ(split.labels.size(), split.files.size());
    }
    for (auto [name, values] : {std::pair("mean", &mean), std::pair("std", &std)}) {
      const hid_t attribute = H5Aopen(file, name, H5P_DEFAULT);
      const hid_t space = H5Aget_space(attribute);
      values->resize(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
      H5Aread(attribute, H5T_NATIVE_FLOAT, values->data());
      H5Sclose(space);
      H5Aclose(attribute);
    }
    H5Fclose(file);
  }

 private:
  template <typename T>
  static std::vector<T> read(hid_t file, const std::string& path, hid_t type) {
    const hid_t dataset = H5Dopen2(file, path.c_str(), H5P_DEFAULT);
    if (dataset < 0) throw std::runtime_error("no " + path);
    const hid_t space = H5Dget_space(dataset);
    std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Sclose(space);
    H5Dclose(dataset);
    return values;
  }
};

inline std::string left_out_of(const ConvertReport& report) {
  std::string text;
  for (const auto& [kind, count] : report.left_out) text += kind + ": " + std::to_string(count) + "; ";
  return text;
}

}  // namespace convoy::data::testing
