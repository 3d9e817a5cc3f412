// Writes a store, which is the HDF5 file with the images for a training. The image datasets are
//
//   /train/images, /test/images     uint8 [N, H, W, C], chunked by whole samples, not compressed
// or, for images that are kept as JPEG and PNG files and may differ in size,
//   /train/encoded, /test/encoded   uint8 [bytes]: the files one after the other
//   /train/offsets, /test/offsets   int64 [N + 1]: file i is encoded[offsets[i]:offsets[i + 1]]
// and in both cases there are
//   /train/labels, /test/labels     int32 [N], 0 <= label < number of classes
//   attributes of the file          classes: strings; mean, std: float32 [C], of the training
//                                   images for pixel values from 0 to 1. Every image has the same
//                                   weight. C is 3 for colour and 1 for grey; encoded images are
//                                   decoded to C channels.
//
// Both writers accept rows in any order, each row once, and leave out rows that were never written.
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
  // Both sizes, all extents of `shape` and the number of classes must be positive.
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

  // Writes the file of one image. Until all rows before it are written, its bytes are kept in an
  // unnamed temporary file in the destination's folder. `statistics` are those of the decoded
  // image; they are ignored for test images.
  void write(Split split, std::int64_t row, std::span<const std::uint8_t> file, std::int32_t label,
             const ChannelStatistics::Image& statistics);
  // Tells the writer that this row will never be written, so later rows need not wait for it.
  void skip(Split split, std::int64_t row);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy::data
