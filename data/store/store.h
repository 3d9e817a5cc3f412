// Reads a store: an HDF5 file with the images of two splits.
//
//   /train/images     uint8 [N, H, W, C], or instead
//   /train/encoded    uint8 [bytes]: JPEG and PNG files of any size, one after the other, and
//   /train/offsets    integers [N + 1]: image i is bytes offsets[i] to offsets[i + 1]
//   /train/labels     integers [N], 0 <= label < number of classes
//   /test/...         the same, stored in the same way
//   attributes        classes: strings; mean, std: numbers [C] for pixel values from 0 to 1. For
//                     encoded images C is 1 or 3.
//
// Any HDF5 file with these datasets and attributes can be read, with every layout, chunk shape and
// kind of link, and with all filters of the installed HDF5 library. Everything except the images is
// checked when the file is opened. An error message is one line with the file, the dataset, what
// was found and what was expected.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/image_set.h"

namespace convoy::data {

// Everything that a training needs to know about a data set, except its images. to_bytes()
// serialises it for ranks that cannot read the file.
struct StoreInfo {
  ImageShape shape;  // shape of every image; {0, 0, C} for encoded images, which may differ in size
  ImageFormat format = ImageFormat::pixels;
  std::array<std::int64_t, 2> size{};  // number of images by Split
  std::vector<std::string> classes;
  std::vector<float> mean, std;  // one value per channel, for pixel values from 0 to 1

  std::string to_bytes() const;
  static StoreInfo from_bytes(std::string_view bytes);
  bool operator==(const StoreInfo&) const = default;
};

// Returns whether the path is a file in HDF5's format.
bool is_hdf5(const std::filesystem::path& file);

class Store {
 public:
  // A split of at most `resident_bytes` is read into memory at the first call of split(). The
  // images of a larger split are read from the file one by one. All ranks of a host then share the
  // page cache.
  static constexpr std::int64_t kDefaultResidentBytes = std::int64_t{1} << 30;
  explicit Store(const std::filesystem::path& file, std::int64_t resident_bytes = kDefaultResidentBytes);
  ~Store();

  const StoreInfo& info() const;
  std::shared_ptr<const ImageSet> split(Split split) const;  // stays valid after the Store is gone
  const std::vector<std::int32_t>& labels(Split split) const;
  std::int64_t stored_bytes(Split split) const;  // bytes of all images of the split
  // Images per chunk; 0 if the images are contiguous or encoded.
  std::int64_t chunk_images(Split split) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy::data
