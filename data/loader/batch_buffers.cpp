#include "data/loader/batch_buffers.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace convoy::data {
namespace {

constexpr std::size_t kAlignment = 4096;

std::pmr::memory_resource& memory_of(const LoaderOptions& options) {
  return options.memory != nullptr ? *options.memory : *std::pmr::new_delete_resource();
}

ImageShape batch_shape(ImageShape stored, const LoaderOptions& options) {
  const bool as_stored = options.output == BatchOutput::raw || options.output == BatchOutput::parameters;
  return as_stored ? stored : options.augmentation.output_shape(stored);
}

std::size_t bytes_of_image(ImageShape stored, const LoaderOptions& options) {
  if (options.output == BatchOutput::parameters) return 0;
  return static_cast<std::size_t>(batch_shape(stored, options).bytes()) *
         (options.output == BatchOutput::raw ? 1 : sizeof(float));
}

}  // namespace

Buffer::Buffer(std::pmr::memory_resource& memory, std::size_t bytes)
    : memory_(&memory), bytes_(bytes), data_(memory.allocate(bytes, kAlignment)) {}

Buffer::Buffer(Buffer&& other) noexcept
    : memory_(other.memory_), bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}

Buffer::~Buffer() {
  if (data_ != nullptr) memory_->deallocate(data_, bytes_, kAlignment);
}

BatchBuffers::BatchBuffers(const BatchSchedule& schedule, ImageShape stored, const LoaderOptions& options)
    : image_bytes_(bytes_of_image(stored, options)),
      labels_(memory_of(options), static_cast<std::size_t>(schedule.capacity()) * sizeof(std::int32_t)),
      samples_(memory_of(options), static_cast<std::size_t>(schedule.capacity()) * sizeof(std::int64_t)),
      parameters_(memory_of(options),
                  static_cast<std::size_t>(schedule.capacity()) * sizeof(AugmentationParameters)),
      images_(memory_of(options), static_cast<std::size_t>(schedule.capacity()) * image_bytes_) {
  batch.capacity = schedule.capacity();
  batch.shape = batch_shape(stored, options);
  batch.labels = labels();
  batch.samples = samples();
  batch.parameters = parameters();
  if (options.output == BatchOutput::raw) {
    batch.raw = static_cast<const std::uint8_t*>(images_.data());
  } else if (options.output != BatchOutput::parameters) {
    batch.images = static_cast<const float*>(images_.data());
  }
}

void* BatchBuffers::image(std::int64_t i) const {
  return static_cast<std::byte*>(images_.data()) + static_cast<std::size_t>(i) * image_bytes_;
}

void BatchBuffers::begin(const BatchSchedule& schedule, Position position, int rank) {
  const Slice slice = schedule.slice(position, rank);
  batch.position = position;
  batch.valid = static_cast<std::int32_t>(slice.count);
  batch.global_valid = static_cast<std::int32_t>(schedule.global_valid(position));
  batch.first = slice.first;
}

BatchFiller::BatchFiller(ImageShape stored, const LoaderOptions& options)
    : stored_(stored),
      augmentation_(options.augmentation),
      seed_(options.seed),
      output_(options.output),
      augmenter_(options.augmentation, stored, options.mean, options.std,
                 options.output == BatchOutput::channels_last ? ImageLayout::channels_last
                                                              : ImageLayout::row_major) {}

void BatchFiller::fill(BatchBuffers& buffers, std::int64_t i, std::int64_t sample, std::int32_t label,
                       const std::uint8_t* pixels) {
  buffers.labels()[i] = label;
  buffers.samples()[i] = sample;
  AugmentationParameters& parameters = buffers.parameters()[i];
  parameters = draw(augmentation_, stored_, seed_, buffers.batch.position.epoch, sample);
  if (output_ == BatchOutput::parameters) return;
  if (output_ == BatchOutput::raw) {
    std::memcpy(buffers.image(i), pixels, buffers.image_bytes());
  } else {
    augmenter_.apply(pixels, place_in_whole(parameters, stored_, augmenter_.output_shape(), 0),
                     static_cast<float*>(buffers.image(i)));
  }
}

void BatchFiller::fill_empty(BatchBuffers& buffers, std::int64_t i) {
  buffers.labels()[i] = -1;
  buffers.samples()[i] = -1;
  buffers.parameters()[i] = {};
  std::memset(buffers.image(i), 0, buffers.image_bytes());
}

std::vector<BatchFiller> make_batch_fillers(ImageShape stored, const LoaderOptions& options) {
  std::vector<BatchFiller> fillers;
  fillers.reserve(static_cast<std::size_t>(options.threads));
  for (int i = 0; i < options.threads; ++i) fillers.emplace_back(stored, options);
  return fillers;
}

std::int64_t samples_per_block(ImageShape stored) {
  return std::clamp<std::int64_t>((64 << 10) / stored.bytes(), 1, 64);
}

}  // namespace convoy::data
