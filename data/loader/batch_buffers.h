// The memory of one batch, and the code that fills it from stored images. The cut of a sample is
// the rectangle of its stored image that is needed for the output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <span>
#include <vector>

#include "data/image/image_decoder.h"
#include "data/loader/augmentation.h"
#include "data/loader/loader.h"
#include "data/loader/schedule.h"

namespace convoy::data {

// An array from a memory resource, aligned for all vector instructions and for page-locking.
class Buffer {
 public:
  Buffer(std::pmr::memory_resource& memory, std::size_t bytes);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer();
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::pmr::memory_resource* memory_;
  std::size_t bytes_;
  void* data_;
};

class BatchBuffers {
 public:
  // `stored` is the shape of the images. Its height and width are 0 if the images differ in size.
  BatchBuffers(const BatchSchedule& schedule, ImageShape stored, const LoaderOptions& options);

  const Batch& batch() const { return batch_; }
  std::int32_t* labels() const { return static_cast<std::int32_t*>(labels_.data()); }
  std::int64_t* samples() const { return static_cast<std::int64_t*>(samples_.data()); }
  kernels::SampleTransform* transforms() const {
    return static_cast<kernels::SampleTransform*>(transforms_.data());
  }
  float* image(std::int64_t i) const;  // returns the image of entry i
  struct Cut {
    std::uint8_t* pixels = nullptr;
    std::int64_t offset = 0;  // offset of `pixels` in Batch::cuts
    bool whole = false;       // false: there is room only for the resampled output
  };
  // Reserves memory for the cut of a sample. Call it once per sample. It is thread-safe.
  Cut take_cut(std::int64_t bytes);
  // Prepares the batch at `position` for filling.
  void begin(const BatchSchedule& schedule, BatchPosition position, int rank);
  // Prepares a batch of `valid` samples for a single rank. Throws std::invalid_argument if the
  // batch has fewer entries.
  void begin(BatchPosition position, std::int64_t valid);
  // Marks entry i as empty: sets its label and sample to -1 and clears its image or transform.
  void fill_empty(std::int64_t i) const;

 private:
  Batch batch_;
  ImageShape output_;
  MixSettings mix_;
  std::int64_t parts_of_step_;
  std::uint64_t seed_;
  std::int64_t reserved_;  // bytes that are kept free for every sample that has no cut yet
  Buffer labels_, samples_, transforms_, pixels_;
  std::unique_ptr<std::mutex> mutex_;  // guards cuts_ and batch_.cut_bytes
  std::int64_t cuts_ = 0;
};

// Fills entries of a batch with samples. Use one filler per thread.
class BatchFiller {
 public:
  BatchFiller(ImageFormat format, ImageShape stored, const LoaderOptions& options);
  // Fills entry i. `stored` holds the sample's bytes. They are not read for BatchOutput::labels,
  // nor for BatchOutput::transforms of an ImageSet of pixels. Throws std::runtime_error if decoding
  // fails.
  void fill(BatchBuffers& buffers, std::int64_t i, std::int64_t sample, std::int32_t label,
            std::span<const std::uint8_t> stored);

 private:
  const std::uint8_t* read_cut(PixelRectangle cut, int reduction);
  kernels::SampleTransform deliver_cut(BatchBuffers& buffers, const PlacedSample& placed, int reduction);

  ImageShape stored_, output_shape_;
  Augmentation augmentation_;
  std::uint64_t seed_;
  BatchOutput output_;
  ImageDecoder decoder_;
  Augmenter augmenter_;
  std::vector<std::uint8_t> cut_;
};

// Returns `options.threads` fillers, one for each thread of the loader.
std::vector<BatchFiller> make_batch_fillers(ImageFormat format, ImageShape stored,
                                            const LoaderOptions& options);

// Returns how many samples a thread takes from a batch at a time. The number is large enough to
// make the cost of synchronisation small. `stored_bytes` is the size of one stored image.
std::int64_t samples_per_block(std::int64_t stored_bytes);

}  // namespace convoy::data
