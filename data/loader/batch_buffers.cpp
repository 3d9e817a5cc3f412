#include "data/loader/batch_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace convoy::data {
namespace {

constexpr std::size_t kAlignment = 4096;
constexpr std::int64_t kCutAlignment = 16;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kCutAlignment - 1) / kCutAlignment * kCutAlignment;
}

std::pmr::memory_resource& memory_of(const LoaderOptions& options) {
  return options.memory != nullptr ? *options.memory : *std::pmr::new_delete_resource();
}

std::size_t bytes_of_pixels(ImageShape stored, ImageShape output, std::int64_t capacity,
                            const LoaderOptions& options) {
  if (options.output == BatchOutput::images)
    return static_cast<std::size_t>(capacity * output.bytes()) * sizeof(float);
  if (options.output == BatchOutput::cuts)
    return static_cast<std::size_t>(cut_capacity(stored, output, capacity));
  return 0;
}

bool has_transforms(BatchOutput output) {
  return output == BatchOutput::cuts || output == BatchOutput::transforms;
}

// Makes the axis copy `extent` pixels unchanged. It is used for images that are resampled already.
void make_identity(kernels::AxisMap& axis, std::int64_t extent) {
  axis.start = 0, axis.scale = 1, axis.skipped = 0;
  axis.extent = axis.size = static_cast<std::int32_t>(extent);
  axis.first = 0;
}

}  // namespace

std::int64_t cut_capacity(ImageShape stored, ImageShape output, std::int64_t capacity) {
  const std::int64_t most = output.bytes() * 5 / 2;
  return capacity * aligned(stored.height > 0 ? std::min(stored.bytes(), most) : most);
}

Buffer::Buffer(std::pmr::memory_resource& memory, std::size_t bytes)
    : memory_(&memory), bytes_(bytes), data_(memory.allocate(bytes, kAlignment)) {}

Buffer::Buffer(Buffer&& other) noexcept
    : memory_(other.memory_), bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}

Buffer::~Buffer() {
  if (data_ != nullptr) memory_->deallocate(data_, bytes_, kAlignment);
}

BatchBuffers::BatchBuffers(const BatchSchedule& schedule, ImageShape stored, const LoaderOptions& options)
    : output_(options.augmentation.output_shape(stored)),
      mix_(options.mix),
      parts_of_step_(options.parts_of_step),
      seed_(options.seed),
      reserved_(aligned(stored.height > 0 ? std::min(stored.bytes(), output_.bytes()) : output_.bytes())),
      labels_(memory_of(options), static_cast<std::size_t>(schedule.capacity()) * sizeof(std::int32_t)),
      samples_(memory_of(options), static_cast<std::size_t>(schedule.capacity()) * sizeof(std::int64_t)),
      transforms_(memory_of(options),
                  has_transforms(options.output)
                      ? static_cast<std::size_t>(schedule.capacity()) * sizeof(kernels::SampleTransform)
                      : 0),
      pixels_(memory_of(options), bytes_of_pixels(stored, output_, schedule.capacity(), options)),
      mutex_(std::make_unique<std::mutex>()) {
  batch_.capacity = schedule.capacity();
  batch_.shape = output_;
  batch_.labels = labels();
  batch_.samples = samples();
  if (has_transforms(options.output)) batch_.transforms = transforms();
  if (options.output == BatchOutput::images) batch_.images = static_cast<const float*>(pixels_.data());
  if (options.output == BatchOutput::cuts) batch_.cuts = static_cast<const std::uint8_t*>(pixels_.data());
}

float* BatchBuffers::image(std::int64_t i) const {
  return static_cast<float*>(pixels_.data()) + i * output_.bytes();
}

BatchBuffers::Cut BatchBuffers::take_cut(std::int64_t bytes) {
  const std::lock_guard lock(*mutex_);
  const std::int64_t left = (batch_.valid - ++cuts_) * reserved_;
  const auto room = static_cast<std::int64_t>(pixels_.bytes()) - batch_.cut_bytes - left;
  const bool whole = aligned(bytes) <= room;
  const std::int64_t offset = batch_.cut_bytes;
  batch_.cut_bytes += whole ? aligned(bytes) : reserved_;
  return {static_cast<std::uint8_t*>(pixels_.data()) + offset, offset, whole};
}

void BatchBuffers::begin(const BatchSchedule& schedule, BatchPosition position, int rank) {
  const SampleRange range = schedule.range(position, rank);
  batch_.position = position;
  batch_.valid = static_cast<std::int32_t>(range.count);
  batch_.global_valid = static_cast<std::int32_t>(schedule.global_valid(position));
  batch_.first = range.first;
  batch_.mix =
      draw_mix(mix_, seed_, position.epoch, position.step / parts_of_step_, output_.height, output_.width);
  batch_.cut_bytes = cuts_ = 0;
}

void BatchBuffers::begin(BatchPosition position, std::int64_t valid) {
  if (valid < 0 || valid > batch_.capacity)
    throw std::invalid_argument(
        fmt::format("a batch of {} samples, expected at most {}", valid, batch_.capacity));
  batch_.position = position;
  batch_.valid = static_cast<std::int32_t>(valid);
  batch_.global_valid = std::max(batch_.valid, 1);
  batch_.cut_bytes = cuts_ = 0;
}

void BatchBuffers::fill_empty(std::int64_t i) const {
  labels()[i] = -1;
  samples()[i] = -1;
  if (batch_.transforms != nullptr) transforms()[i] = {};
  if (batch_.images != nullptr) std::fill_n(image(i), output_.bytes(), 0.0f);
}

BatchFiller::BatchFiller(ImageFormat format, ImageShape stored, const LoaderOptions& options)
    : stored_(stored),
      output_shape_(options.augmentation.output_shape(stored)),
      augmentation_(options.augmentation),
      seed_(options.seed),
      output_(options.output),
      decoder_(format, stored),
      augmenter_(options.augmentation, stored, options.mean, options.std, ImageLayout::row_major) {}

void BatchFiller::fill(BatchBuffers& buffers, std::int64_t i, std::int64_t sample, std::int32_t label,
                       std::span<const std::uint8_t> stored) {
  buffers.labels()[i] = label;
  buffers.samples()[i] = sample;
  if (output_ == BatchOutput::labels) return;
  const bool pixels = stored_.height > 0;
  const ImageShape image = pixels && output_ != BatchOutput::cuts ? stored_ : decoder_.open(stored);
  const AugmentationParameters parameters =
      draw(augmentation_, image, seed_, buffers.batch().position.epoch, sample);
  if (pixels && output_ == BatchOutput::transforms) {
    buffers.transforms()[i] = place_in_whole(parameters, image, output_shape_, sample * image.bytes());
    return;
  }
  if (pixels && output_ == BatchOutput::images) {
    augmenter_.apply(stored.data(), place_in_whole(parameters, image, output_shape_, 0), buffers.image(i));
    return;
  }
  // Let the decoder reduce images only for random resized crops. On noise, the pixels then differ
  // from Pillow's by more than one level, and evaluation must see the same pixels as torchvision.
  const int reduction = augmentation_.random_resized_crop ? decoder_.reduction(parameters.scale()) : 1;
  const PlacedSample placed = place(parameters, image, output_shape_, reduction);
  if (output_ == BatchOutput::images)
    augmenter_.apply(read_cut(placed.cut, reduction), placed.transform, buffers.image(i));
  else if (output_ == BatchOutput::cuts)
    buffers.transforms()[i] = deliver_cut(buffers, placed, reduction);
  else
    buffers.transforms()[i] = placed.transform;
}

const std::uint8_t* BatchFiller::read_cut(PixelRectangle cut, int reduction) {
  const std::int64_t bytes = std::int64_t{cut.height} * cut.width * stored_.channels;
  if (std::ssize(cut_) < bytes) cut_.resize(bytes);
  decoder_.read(cut, reduction, cut_.data());
  return cut_.data();
}

// Puts the source pixels of a sample (its cut) into the batch. If they do not fit, resamples the
// sample on the host and puts the smaller result there.
kernels::SampleTransform BatchFiller::deliver_cut(BatchBuffers& buffers, const PlacedSample& placed,
                                                  int reduction) {
  kernels::SampleTransform transform = placed.transform;
  const BatchBuffers::Cut cut =
      buffers.take_cut(std::int64_t{placed.cut.height} * placed.cut.width * stored_.channels);
  if (cut.whole) {
    decoder_.read(placed.cut, reduction, cut.pixels);
  } else {
    transform.flip = 0;  // the device will mirror the pixels, so do not mirror them here
    augmenter_.resample(read_cut(placed.cut, reduction), transform, cut.pixels);
    transform.flip = placed.transform.flip;
    make_identity(transform.rows, output_shape_.height);
    make_identity(transform.columns, output_shape_.width);
    transform.pitch = static_cast<std::int32_t>(output_shape_.width);
  }
  transform.offset = cut.offset;
  return transform;
}

std::vector<BatchFiller> make_batch_fillers(ImageFormat format, ImageShape stored,
                                            const LoaderOptions& options) {
  std::vector<BatchFiller> fillers;
  fillers.reserve(static_cast<std::size_t>(options.threads));
  for (int i = 0; i < options.threads; ++i) fillers.emplace_back(format, stored, options);
  return fillers;
}

std::int64_t samples_per_block(std::int64_t stored_bytes) {
  return std::clamp<std::int64_t>((64 << 10) / std::max<std::int64_t>(stored_bytes, 1), 1, 64);
}

}  // namespace convoy::data
