// The images of one split of a store, either as pixels or as JPEG and PNG files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/image_set.h"
#include "data/store/dataset_bytes.h"

namespace convoy::data {

class StoredImages final : public ImageSet {
 public:
  // If `offsets` is null, `bytes` are pixels [N, H, W, C]. Otherwise image i is the encoded file in
  // bytes offsets[i] to offsets[i + 1]. Labels and offsets must be valid; they are shared with the
  // store.
  StoredImages(std::unique_ptr<const DatasetBytes> bytes, ImageShape shape,
               std::shared_ptr<const std::vector<std::int32_t>> labels,
               std::shared_ptr<const std::vector<std::int64_t>> offsets);

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_->size()); }
  std::int32_t label(std::int64_t sample) const override {
    return (*labels_)[static_cast<std::size_t>(sample)];
  }
  ImageShape shape() const override { return shape_; }
  ImageFormat format() const override {
    return offsets_ == nullptr ? ImageFormat::pixels : ImageFormat::encoded;
  }
  std::int64_t largest_bytes() const override { return largest_bytes_; }
  std::span<const std::uint8_t> stored(std::int64_t sample, std::span<std::uint8_t> scratch) const override;
  std::int64_t stored_bytes(std::int64_t sample) const override;
  std::string name(std::int64_t sample) const override;

 private:
  std::unique_ptr<const DatasetBytes> bytes_;
  ImageShape shape_;
  std::shared_ptr<const std::vector<std::int32_t>> labels_;
  std::shared_ptr<const std::vector<std::int64_t>> offsets_;
  std::int64_t largest_bytes_;
};

}  // namespace convoy::data
