// Writes a store: the HDF5 file that Convoy trains from.
//
//   /train/images, /test/images   uint8 [N, H, W, C], chunked by whole samples, not compressed
//   /train/labels, /test/labels   int32 [N], 0 <= label < number of classes
//   attributes of the file        classes: strings; mean, std: float32 [C], of the training images on the
//                                 scale 0..1, over all pixels of a channel
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/image_set.h"

namespace convoy::data {

class StoreWriter {
 public:
  struct Sizes {
    std::int64_t train = 0, test = 0;
  };
  // Both sizes, the shape's extents and the number of classes must be positive. The file appears at
  // `destination` when finish() returns, or never.
  StoreWriter(const std::filesystem::path& destination, ImageShape shape, std::vector<std::string> classes,
              Sizes sizes);
  ~StoreWriter();

  // Rows `first`, `first + 1`, … of a split, in any order, each row once. images: labels.size() images
  // [H, W, C].
  void write(Split split, std::int64_t first, std::span<const std::uint8_t> images,
             std::span<const std::int32_t> labels);
  // Drops the rows that were never written and closes the gaps, writes labels and statistics, and puts the
  // file in its place.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy::data
