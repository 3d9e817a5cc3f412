#include "data/loader/augmentation.h"

namespace convoy::data {

Augmenter::Augmenter(const Augmentation& augmentation, ImageShape stored, std::span<const float> mean,
                     std::span<const float> std, ImageLayout layout, VectorLevel level)
    : Augmenter(stored, augmentation.output_shape(stored),
                augmentation.normalise ? normalisation(mean, std) : unit_scale(stored.channels), layout,
                augmentation.image_ops.most() > 0, level) {}

Augmenter::Augmenter(ImageShape stored, ImageShape output, const std::vector<ScaleShift>& factors,
                     ImageLayout layout, bool changes_images, VectorLevel level)
    : output_(output),
      fill_(nearest_to_zero(factors)),
      normaliser_(output, factors, layout, level),
      resampler_(level),
      resampled_(static_cast<std::size_t>(output.bytes())) {
  resampler_.reserve(stored, output);
  if (changes_images) image_ops_.emplace(output.height, output.width, output.channels);
}

void Augmenter::apply(const std::uint8_t* bytes, const kernels::SampleTransform& transform, float* to) {
  resample(bytes, transform, resampled_.data());
  if (image_ops_) image_ops_->apply(transform.ops, resampled_.data());
  normaliser_.apply(resampled_.data(), transform, to);
}

void Augmenter::resample(const std::uint8_t* bytes, const kernels::SampleTransform& transform,
                         std::uint8_t* to) {
  resampler_.resample(bytes, transform, output_, fill_.data(), to);
}

}  // namespace convoy::data
