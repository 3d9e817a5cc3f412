// Chooses the augmentation parameters of one sample at random.
#include <algorithm>
#include <cmath>

#include "data/image/resample.h"
#include "data/loader/augmentation.h"
#include "data/loader/sample_draws.h"

namespace convoy::data {
namespace {

std::int32_t narrow(std::int64_t pixels) { return static_cast<std::int32_t>(pixels); }

// Makes the output show `window`, resized to the size of the output.
void take_window(AugmentationParameters& parameters, PixelRectangle window, ImageShape output) {
  parameters.window = window;
  parameters.resized_height = narrow(output.height);
  parameters.resized_width = narrow(output.width);
}

// Chooses the centre as torchvision's Resize and CenterCrop do. The longer side is rounded down.
void take_centre(AugmentationParameters& parameters, int resize_short, ImageShape stored, ImageShape output) {
  const bool tall = stored.height >= stored.width;
  const std::int64_t shorter = tall ? stored.width : stored.height;
  std::int64_t side = resize_short;
  if (side == 0) {
    // Take the smallest size at which the image covers both the width and the height of the output.
    const bool by_width = output.width * stored.height >= output.height * stored.width;
    side = by_width ? (output.width * shorter + stored.width - 1) / stored.width
                    : (output.height * shorter + stored.height - 1) / stored.height;
  }
  const auto resized = [&](std::int64_t extent) { return narrow(side * extent / shorter); };
  parameters.window = {0, 0, narrow(stored.width), narrow(stored.height)};
  parameters.resized_height = std::max(resized(stored.height), narrow(output.height));
  parameters.resized_width = std::max(resized(stored.width), narrow(output.width));
  parameters.top = narrow(half_rounded_to_even(parameters.resized_height - output.height));
  parameters.left = narrow(half_rounded_to_even(parameters.resized_width - output.width));
}

// Returns the start of a random crop along one axis, counted from the start of the unpadded image.
std::int32_t padded_place(std::uint32_t word, std::int64_t stored, std::int64_t output, int padding) {
  const std::int64_t room = stored + 2 * padding - output;
  return room >= 0 ? uniform_below(word, room + 1) - padding : -uniform_below(word, 1 - room) - padding;
}

// Returns the window of a random resized crop for the case that no random window fits into the
// image. This is the largest centred window whose aspect ratio is allowed.
PixelRectangle fallback_window(const Augmentation& augmentation, ImageShape stored) {
  std::int64_t width = stored.width, height = stored.height;
  const double aspect = static_cast<double>(width) / static_cast<double>(height);
  if (aspect < augmentation.min_aspect)
    height = std::lrint(static_cast<double>(width) / augmentation.min_aspect);
  else if (aspect > augmentation.max_aspect)
    width = std::lrint(static_cast<double>(height) * augmentation.max_aspect);
  height = std::clamp<std::int64_t>(height, 1, stored.height);
  width = std::clamp<std::int64_t>(width, 1, stored.width);
  return {narrow((stored.width - width) / 2), narrow((stored.height - height) / 2), narrow(width),
          narrow(height)};
}

PixelRectangle resized_crop(const Augmentation& augmentation, ImageShape stored, const SampleDraws& draws) {
  const double area = static_cast<double>(stored.height * stored.width);
  for (int attempt = 0; attempt < kCropTries; ++attempt) {
    const kernels::Philox4 words = draws.block(kResizedCropBlock + attempt);
    const double share = uniform_between(words.word[0], augmentation.min_area, augmentation.max_area);
    const double aspect =
        log_uniform_between(words.word[1], augmentation.min_aspect, augmentation.max_aspect);
    const std::int64_t width = std::lrint(std::sqrt(area * share * aspect));
    const std::int64_t height = std::lrint(std::sqrt(area * share / aspect));
    if (width < 1 || height < 1 || width > stored.width || height > stored.height) continue;
    return {uniform_below(words.word[2], stored.width - width + 1),
            uniform_below(words.word[3], stored.height - height + 1), narrow(width), narrow(height)};
  }
  return fallback_window(augmentation, stored);
}

kernels::ErasedRectangle cutout(int size, ImageShape output, const SampleDraws& draws) {
  const kernels::Philox4 words = draws.block(kCutoutBlock);
  return {uniform_below(words.word[1], output.height) - size / 2,
          uniform_below(words.word[0], output.width) - size / 2, size, size};
}

// Chooses the rectangle of random erasing. It is empty if none of the random rectangles fits into
// the output.
kernels::ErasedRectangle random_erasing(const Augmentation& augmentation, ImageShape output,
                                        const SampleDraws& draws) {
  const double area = static_cast<double>(output.height * output.width);
  for (int attempt = 0; attempt < kEraseTries; ++attempt) {
    const kernels::Philox4 words = draws.block(kErasingBlock + attempt);
    const double share =
        uniform_between(words.word[0], augmentation.min_erased_area, augmentation.max_erased_area);
    const double aspect =
        log_uniform_between(words.word[1], augmentation.min_erased_aspect, augmentation.max_erased_aspect);
    const std::int64_t height = std::lrint(std::sqrt(area * share * aspect));
    const std::int64_t width = std::lrint(std::sqrt(area * share / aspect));
    if (height >= output.height || width >= output.width) continue;
    return {uniform_below(words.word[2], output.height - height + 1),
            uniform_below(words.word[3], output.width - width + 1), narrow(height), narrow(width)};
  }
  return {};
}

}  // namespace

double AugmentationParameters::scale() const {
  return std::min(static_cast<double>(window.height) / resized_height,
                  static_cast<double>(window.width) / resized_width);
}

AugmentationParameters draw(const Augmentation& augmentation, ImageShape stored, std::uint64_t seed,
                            std::int64_t epoch, std::int64_t sample) {
  const ImageShape output{augmentation.height > 0 ? augmentation.height : stored.height,
                          augmentation.width > 0 ? augmentation.width : stored.width, stored.channels};
  const SampleDraws draws(seed, epoch, sample);
  const kernels::Philox4 words = draws.block(0);
  AugmentationParameters parameters;
  if (augmentation.random_crop) {
    const PixelRectangle window{
        padded_place(words.word[0], stored.width, output.width, augmentation.padding),
        padded_place(words.word[1], stored.height, output.height, augmentation.padding), narrow(output.width),
        narrow(output.height)};
    take_window(parameters, window, output);
  } else if (augmentation.random_resized_crop) {
    take_window(parameters, resized_crop(augmentation, stored, draws), output);
  } else {
    take_centre(parameters, augmentation.resize_short, stored, output);
  }
  if (augmentation.flip) parameters.flip = static_cast<std::int32_t>(words.word[2] >> 31);
  if (augmentation.cutout) parameters.erased[0] = cutout(augmentation.cutout_size, output, draws);
  if (kernels::uniform(words.word[3]) < augmentation.erasing)
    parameters.erased[1] = random_erasing(augmentation, output, draws);
  if (augmentation.image_ops.most() > 0)
    draw_image_ops(augmentation.image_ops, output, seed, epoch, sample, parameters.ops);
  return parameters;
}

}  // namespace convoy::data
