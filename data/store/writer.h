// Writes a store: the HDF5 file that Convoy trains from.
//
//   /train/images, /test/images     uint8 [N, H, W, C], chunked by whole samples, not compressed
// or, for images that stay JPEG or PNG files and may differ in size,
//   /train/encoded, /test/encoded   uint8 [bytes]: the files one after the other
//   /train/offsets, /test/offsets   int64 [N + 1]: file i is encoded[offsets[i]:offsets[i + 1]]
// and in both cases
//   /train/labels, /test/labels     int32 [N], 0 <= label < number of classes
//   attributes of the file          classes: strings; mean, std: float32 [C], of the training
//                                   images on the scale 0..1, each image counting the same. C is
//                                   3 for colour, 1 for grey; encoded images are decoded to so
//                                   many channels.
//
// Both writers take rows in any order, each row once, and leave out rows that were never written.
// The file appears at its destination when finish() returns, or never. Errors are
// std::runtime_error and name the destination.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/image_set.h"
#include "data/store/channel_statistics.h"

namespace convoy::data {

class StoreWriter {
 public:
  struct Sizes {
    std::int64_t train = 0, test = 0;
  };
  // Both sizes, the shape's extents and the number of classes must be positive.
  StoreWriter(const std::filesystem::path& destination, ImageShape shape, std::vector<std::string> classes,
              Sizes sizes);
  ~StoreWriter();

  // Writes the rows `first`, `first + 1`, … of a split. There is one image [H, W, C] per label.
  void write(Split split, std::int64_t first, std::span<const std::uint8_t> images,
             std::span<const std::int32_t> labels);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class EncodedStoreWriter {
 public:
  EncodedStoreWriter(const std::filesystem::path& destination, std::vector<std::string> classes,
                     StoreWriter::Sizes sizes);
  ~EncodedStoreWriter();

  // Writes the file of one image. A row that comes before its turn waits in an unnamed file in the
  // destination's folder. `statistics` are the statistics of the decoded image; they are ignored
  // for test images.
  void write(Split split, std::int64_t row, std::span<const std::uint8_t> file, std::int32_t label,
             const ChannelStatistics::Image& statistics);
  // Says that this row will not be written, so that the rows after it need not wait.
  void skip(Split split, std::int64_t row);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy::data
