// Helpers of the loader's tests: data sets whose pixels show which sample they are, and copies of
// batches.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <stdexcept>
#include <vector>

#include "data/loader/loader.h"
#include "tests/data/support.h"

namespace convoy::data::testing {

// A data set in memory: image i is random bytes that depend on i, and its label is i % 7. Counts
// reads, and can fail on one sample.
class TestSet final : public ImageSet {
 public:
  explicit TestSet(std::int64_t size, ImageShape shape = {6, 5, 3}) : size_(size), shape_(shape) {}
  std::int64_t size() const override { return size_; }
  ImageShape shape() const override { return shape_; }
  std::int32_t label(std::int64_t sample) const override { return static_cast<std::int32_t>(sample % 7); }
  ImageFormat format() const override { return ImageFormat::pixels; }
  std::int64_t largest_bytes() const override { return shape_.bytes(); }
  std::span<const std::uint8_t> stored(std::int64_t sample, std::span<std::uint8_t> scratch) const override {
    if (sample == bad_sample) throw std::runtime_error("set.h5: /train/images: cannot read");
    ++reads;
    const Bytes bytes = pixels(sample);
    std::copy(bytes.begin(), bytes.end(), scratch.begin());
    return scratch.first(bytes.size());
  }
  Bytes pixels(std::int64_t sample) const {
    return random_bytes(static_cast<std::size_t>(shape_.bytes()), static_cast<std::uint64_t>(sample) + 100);
  }

  std::int64_t bad_sample = -1;
  mutable std::atomic<std::int64_t> reads{0};

 private:
  std::int64_t size_;
  ImageShape shape_;
};

// Holds the images of another set as PNG files, or JPEG files of different sizes.
class EncodedSet final : public ImageSet {
 public:
  explicit EncodedSet(const TestSet& pixels) {
    for (std::int64_t i = 0; i < pixels.size(); ++i)
      add(encode_png({pixels.shape(), pixels.pixels(i)}), pixels.label(i));
  }
  explicit EncodedSet(std::int64_t size) {
    for (std::int64_t i = 0; i < size; ++i)
      add(encode_jpeg(smooth_image(60 + i % 5 * 40, 50 + i % 7 * 30, 3, static_cast<int>(i))),
          static_cast<std::int32_t>(i % 7));
  }
  explicit EncodedSet(const std::vector<Bytes>& files) {
    for (const Bytes& file : files) add(file, 0);
  }
  std::int64_t size() const override { return std::ssize(files_); }
  ImageShape shape() const override { return {0, 0, 3}; }
  std::int32_t label(std::int64_t sample) const override { return labels_[sample]; }
  ImageFormat format() const override { return ImageFormat::encoded; }
  std::int64_t largest_bytes() const override { return largest_; }
  std::int64_t stored_bytes(std::int64_t sample) const override { return std::ssize(files_[sample]); }
  std::span<const std::uint8_t> stored(std::int64_t sample, std::span<std::uint8_t>) const override {
    return files_[sample];
  }
  void damage(std::int64_t sample) { files_[sample].resize(files_[sample].size() / 2); }

 private:
  void add(Bytes file, std::int32_t label) {
    largest_ = std::max(largest_, std::ssize(file));
    files_.push_back(std::move(file));
    labels_.push_back(label);
  }
  std::vector<Bytes> files_;
  std::vector<std::int32_t> labels_;
  std::int64_t largest_ = 0;
};

struct BatchCopy {
  BatchPosition position;
  std::int32_t capacity, valid, global_valid;
  std::int64_t first;
  std::vector<std::int32_t> labels;
  std::vector<std::int64_t> samples;
  // The copies of the transforms have the offset 0, because offsets may differ between runs.
  std::vector<kernels::SampleTransform> transforms;
  std::vector<float> images;
  bool operator==(const BatchCopy&) const = default;

  // If `options` is given, makes images from the cuts (the pixels that a sample needs), as a device
  // does.
  explicit BatchCopy(const Batch& batch, const LoaderOptions* options = nullptr)
      : position(batch.position),
        capacity(batch.capacity),
        valid(batch.valid),
        global_valid(batch.global_valid),
        first(batch.first),
        labels(batch.labels, batch.labels + capacity),
        samples(batch.samples, batch.samples + capacity) {
    if (batch.transforms != nullptr) transforms.assign(batch.transforms, batch.transforms + capacity);
    const std::int64_t values = batch.shape.bytes();
    if (batch.images != nullptr) images.assign(batch.images, batch.images + capacity * values);
    if (batch.cuts != nullptr && options != nullptr) {
      images.assign(capacity * values, 0);
      Augmenter augmenter(options->augmentation, batch.shape, options->mean, options->std,
                          ImageLayout::row_major);
      for (std::int32_t i = 0; i < valid; ++i)
        augmenter.apply(batch.cuts, batch.transforms[i], images.data() + i * values);
    }
    for (kernels::SampleTransform& transform : transforms) transform.offset = 0;
  }
};

inline std::vector<BatchCopy> take(BatchSource& source, std::int64_t count,
                                   const LoaderOptions* options = nullptr) {
  std::vector<BatchCopy> copies;
  for (std::int64_t i = 0; i < count; ++i) copies.emplace_back(*source.next(), options);
  return copies;
}

inline LoaderOptions loader_options(std::int64_t global_batch, int rank = 0, int ranks = 1) {
  LoaderOptions options;
  options.global_batch = global_batch;
  options.rank = rank;
  options.ranks = ranks;
  options.seed = 11;
  options.mean = {0.4f, 0.5f, 0.6f};
  options.std = {0.2f, 0.25f, 0.3f};
  options.augmentation = parse_augmentation("crop:2,flip,cutout:2");
  return options;
}

}  // namespace convoy::data::testing
