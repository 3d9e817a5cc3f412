// The memory behind one batch, and the work that turns stored images into what it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "data/loader/augmentation.h"
#include "data/loader/loader.h"
#include "data/loader/schedule.h"

namespace convoy::data {

// An array from a memory resource, aligned for any vector instruction and for pinning.
class Buffer {
 public:
  Buffer(std::pmr::memory_resource& memory, std::size_t bytes);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer();
  void* data() const { return data_; }

 private:
  std::pmr::memory_resource* memory_;
  std::size_t bytes_;
  void* data_;
};

class BatchBuffers {
 public:
  BatchBuffers(const BatchSchedule& schedule, ImageShape stored, const LoaderOptions& options);

  Batch batch;
  std::int32_t* labels() const { return static_cast<std::int32_t*>(labels_.data()); }
  std::int64_t* samples() const { return static_cast<std::int64_t*>(samples_.data()); }
  AugmentationParameters* parameters() const {
    return static_cast<AugmentationParameters*>(parameters_.data());
  }
  void* image(std::int64_t i) const;  // of entry i
  std::size_t image_bytes() const { return image_bytes_; }
  // Says which batch the entries are about to hold.
  void begin(const BatchSchedule& schedule, Position position, int rank);

 private:
  std::size_t image_bytes_;
  Buffer labels_, samples_, parameters_, images_;
};

// Fills entries of a batch. One a thread.
class BatchFiller {
 public:
  BatchFiller(ImageShape stored, const LoaderOptions& options);
  // Entry i from the stored pixels of a sample.
  void fill(BatchBuffers& buffers, std::int64_t i, std::int64_t sample, std::int32_t label,
            const std::uint8_t* pixels);
  static void fill_empty(BatchBuffers& buffers, std::int64_t i);

 private:
  ImageShape stored_;
  Augmentation augmentation_;
  std::uint64_t seed_;
  BatchOutput output_;
  Augmenter augmenter_;
};

// Samples that a thread should take at a time: enough to make taking them cheap.
std::int64_t samples_per_block(ImageShape stored);

}  // namespace convoy::data
