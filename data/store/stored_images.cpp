#include "data/store/stored_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace convoy::data {
namespace {

std::int64_t largest_difference(const std::vector<std::int64_t>& offsets) {
  std::int64_t largest = 0;
  for (std::size_t i = 1; i < offsets.size(); ++i) largest = std::max(largest, offsets[i] - offsets[i - 1]);
  return largest;
}

}  // namespace

StoredImages::StoredImages(std::unique_ptr<const DatasetBytes> bytes, ImageShape shape,
                           std::shared_ptr<const std::vector<std::int32_t>> labels,
                           std::shared_ptr<const std::vector<std::int64_t>> offsets)
    : bytes_(std::move(bytes)),
      shape_(shape),
      labels_(std::move(labels)),
      offsets_(std::move(offsets)),
      largest_bytes_(offsets_ == nullptr ? shape.bytes() : largest_difference(*offsets_)) {}

std::span<const std::uint8_t> StoredImages::stored(std::int64_t sample,
                                                   std::span<std::uint8_t> scratch) const {
  if (offsets_ == nullptr) return bytes_->read(sample * shape_.bytes(), shape_.bytes(), scratch);
  const std::int64_t* at = offsets_->data() + sample;
  return bytes_->read(at[0], at[1] - at[0], scratch);
}

std::int64_t StoredImages::stored_bytes(std::int64_t sample) const {
  return offsets_ == nullptr ? shape_.bytes() : offsets_->data()[sample + 1] - offsets_->data()[sample];
}

std::string StoredImages::name(std::int64_t sample) const {
  return fmt::format("{}: image {}", bytes_->name(), sample);
}

}  // namespace convoy::data
