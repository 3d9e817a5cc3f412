// The pixels of one split of a store. Where HDF5 keeps whole images uncompressed in the file (as StoreWriter
// writes them) their places are looked up once and they are read with pread, without HDF5 and its lock.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/image_set.h"
#include "data/store/hdf5.h"

namespace convoy::data {

class StoredImages final : public ImageSet {
 public:
  // `dataset` is a checked uint8 [N, H, W, C] dataset of `file`; `name` is "FILE: /train/images".
  StoredImages(const std::filesystem::path& file, hdf5::Handle dataset, std::string name, ImageShape shape,
               std::vector<std::int32_t> labels, std::int64_t resident_bytes);
  ~StoredImages() override;
  StoredImages(const StoredImages&) = delete;
  StoredImages& operator=(const StoredImages&) = delete;

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  ImageShape shape() const override { return shape_; }
  std::int32_t label(std::int64_t sample) const override { return labels_[static_cast<std::size_t>(sample)]; }
  ImageFormat format() const override { return ImageFormat::pixels; }
  std::int64_t largest_bytes() const override { return shape_.bytes(); }
  std::span<const std::uint8_t> stored(std::int64_t sample, std::span<std::uint8_t> scratch) const override;

 private:
  void find_places(std::int64_t file_bytes);
  void read_rows(std::int64_t first, std::int64_t rows, std::uint8_t* to) const;  // through HDF5
  void read_at(std::int64_t offset, std::int64_t bytes, std::uint8_t* to) const;  // through pread

  std::string name_;
  ImageShape shape_;
  std::vector<std::int32_t> labels_;
  hdf5::Handle dataset_;                      // kept open where pixels must come through HDF5
  int descriptor_ = -1;                       // else the file and
  std::vector<std::int64_t> places_;          // the byte offset of every chunk in it
  std::int64_t images_in_place_ = 0;          // images that follow one another at each offset
  std::unique_ptr<std::uint8_t[]> resident_;  // or the pixels themselves
};

}  // namespace convoy::data
