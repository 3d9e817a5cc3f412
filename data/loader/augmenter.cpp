// The host's half of augmentation: cutting, mirroring, resizing and normalising one image.
#include <algorithm>
#include <stdexcept>

#include "data/loader/augmentation.h"

namespace convoy::data {
namespace {

// One row of pixels through the tables. kChannels is known to the compiler for the usual 1 and 3, 0
// otherwise; `step` is -1 for mirrored rows.
template <int kChannels>
void convert_row(const std::uint8_t* from, std::int64_t step, std::int64_t count, std::int64_t any_channels,
                 const float* table, float* to, std::int64_t pixel_stride, std::int64_t channel_stride) {
  const std::int64_t channels = kChannels > 0 ? kChannels : any_channels;
  for (std::int64_t x = 0; x < count; ++x, from += step * channels, to += pixel_stride) {
    for (std::int64_t c = 0; c < channels; ++c) to[c * channel_stride] = table[c * 256 + from[c]];
  }
}

}  // namespace

Augmenter::Augmenter(const Augmentation& augmentation, ImageShape stored, std::span<const float> mean,
                     std::span<const float> std, ImageLayout layout)
    : stored_(stored),
      output_(augmentation.output_shape(stored)),
      layout_(layout),
      pixel_stride_(layout == ImageLayout::row_major ? 1 : stored.channels),
      channel_stride_(layout == ImageLayout::row_major ? output_.height * output_.width : 1) {
  const auto channels = static_cast<std::size_t>(stored.channels);
  if (augmentation.normalise && (mean.size() != channels || std.size() != channels)) {
    throw std::invalid_argument("Augmenter: mean and std need a value a channel");
  }
  for (std::size_t c = 0; c < channels; ++c) {
    const double deviation = augmentation.normalise ? std[c] : 1.0,
                 average = augmentation.normalise ? mean[c] : 0.0;
    scale_.push_back(static_cast<float>(1.0 / (255.0 * deviation)));
    bias_.push_back(static_cast<float>(-average / deviation));
    for (int value = 0; value < 256; ++value) {
      table_.push_back(static_cast<float>(value) * scale_.back() + bias_.back());
    }
  }
  resampler_.reserve(stored, output_.height, output_.width);
}

void Augmenter::apply(const std::uint8_t* image, const AugmentationParameters& parameters, float* output) {
  if (parameters.window.width == output_.width && parameters.window.height == output_.height) {
    copy_window(image, parameters, output);
  } else {
    resample_window(image, parameters, output);
  }
  if (parameters.cutout_size > 0) cut_out(parameters, output);
}

void Augmenter::blank(float* output, std::int64_t y, std::int64_t first, std::int64_t last) const {
  if (first >= last) return;
  const std::int64_t channels = output_.channels;
  if (layout_ == ImageLayout::channels_last) {
    std::fill_n(output + (y * output_.width + first) * channels, (last - first) * channels, 0.0f);
    return;
  }
  for (std::int64_t c = 0; c < channels; ++c) {
    std::fill_n(output + c * channel_stride_ + y * output_.width + first, last - first, 0.0f);
  }
}

void Augmenter::copy_window(const std::uint8_t* image, const AugmentationParameters& parameters,
                            float* output) const {
  const Window& window = parameters.window;
  const std::int64_t width = output_.width, channels = output_.channels;
  // The output columns that the source covers, before mirroring.
  const std::int64_t first = std::clamp<std::int64_t>(-window.x, 0, width);
  const std::int64_t last = std::clamp<std::int64_t>(stored_.width - window.x, first, width);
  const bool flip = parameters.flip != 0;
  const std::int64_t begin = flip ? width - last : first, end = flip ? width - first : last;
  const auto convert = channels == 3 ? convert_row<3> : channels == 1 ? convert_row<1> : convert_row<0>;
  for (std::int64_t y = 0; y < output_.height; ++y) {
    const std::int64_t source_y = window.y + y;
    if (source_y < 0 || source_y >= stored_.height) {
      blank(output, y, 0, width);
      continue;
    }
    const std::int64_t source_x = window.x + (flip ? last - 1 : first);
    blank(output, y, 0, begin);
    convert(image + (source_y * stored_.width + source_x) * channels, flip ? -1 : 1, end - begin, channels,
            table_.data(), output + (y * width + begin) * pixel_stride_, pixel_stride_, channel_stride_);
    blank(output, y, end, width);
  }
}

void Augmenter::resample_window(const std::uint8_t* image, const AugmentationParameters& parameters,
                                float* output) {
  const std::int64_t width = output_.width, channels = output_.channels;
  const float* from = resampler_.resample(image, stored_, parameters.window, output_.height, width);
  const std::int64_t step = parameters.flip != 0 ? -channels : channels;
  for (std::int64_t y = 0; y < output_.height; ++y, from += width * channels) {
    const float* row = parameters.flip != 0 ? from + (width - 1) * channels : from;
    float* to = output + y * width * pixel_stride_;
    for (std::int64_t c = 0; c < channels; ++c) {
      const float scale = scale_[static_cast<std::size_t>(c)], bias = bias_[static_cast<std::size_t>(c)];
      for (std::int64_t x = 0; x < width; ++x) {
        to[x * pixel_stride_ + c * channel_stride_] = row[x * step + c] * scale + bias;
      }
    }
  }
}

void Augmenter::cut_out(const AugmentationParameters& parameters, float* output) const {
  const auto clip = [](std::int64_t value, std::int64_t limit) {
    return std::clamp<std::int64_t>(value, 0, limit);
  };
  const std::int64_t size = parameters.cutout_size;
  const std::int64_t first = clip(parameters.cutout_x, output_.width);
  const std::int64_t last = clip(parameters.cutout_x + size, output_.width);
  for (std::int64_t y = clip(parameters.cutout_y, output_.height);
       y < clip(parameters.cutout_y + size, output_.height); ++y) {
    blank(output, y, first, last);
  }
}

}  // namespace convoy::data
