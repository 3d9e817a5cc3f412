#include "data/loader/augmentation.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "kernels/device/philox.h"

namespace convoy::data {
namespace {

constexpr std::uint64_t kPurpose = 0x6175676D656E74ull << 8;  // keeps this stream apart from the other uses
constexpr int kCropTries = 10;

// The words of one sample's stream; block b of it is the counter (sample, epoch, b).
class Draws {
 public:
  Draws(std::uint64_t seed, std::int64_t epoch, std::int64_t sample)
      : key_(seed ^ kPurpose),
        sample_(static_cast<std::uint64_t>(sample)),
        epoch_(static_cast<std::uint64_t>(epoch)) {}
  kernels::Philox4 block(int b) const {
    return kernels::philox(key_, sample_, epoch_ << 8 | static_cast<std::uint64_t>(b));
  }

 private:
  std::uint64_t key_, sample_, epoch_;
};

// Uniform in 0 … count - 1; the bias of the multiplication is below count / 2^32.
std::int32_t below(std::uint32_t word, std::int64_t count) {
  return static_cast<std::int32_t>(static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(count) >>
                                   32);
}

Window centre_window(const Augmentation& augmentation, ImageShape stored, ImageShape output) {
  const double scale = augmentation.centre_fraction *
                       std::min(static_cast<double>(stored.height) / static_cast<double>(output.height),
                                static_cast<double>(stored.width) / static_cast<double>(output.width));
  const auto side = [&](std::int64_t extent, std::int64_t limit) {
    const auto wanted = std::lround(scale * static_cast<double>(extent));
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(wanted, 1, limit));
  };
  Window window;
  window.width = side(output.width, stored.width);
  window.height = side(output.height, stored.height);
  window.x = (static_cast<std::int32_t>(stored.width) - window.width) / 2;
  window.y = (static_cast<std::int32_t>(stored.height) - window.height) / 2;
  return window;
}

Window resized_window(const Augmentation& augmentation, ImageShape stored, ImageShape output,
                      const Draws& draws) {
  const double area = static_cast<double>(stored.height * stored.width);
  for (int attempt = 0; attempt < kCropTries; ++attempt) {
    const kernels::Philox4 words = draws.block(1 + attempt);
    const double share = augmentation.min_area + static_cast<double>(kernels::uniform(words.word[0])) *
                                                     (augmentation.max_area - augmentation.min_area);
    const double low = std::log(augmentation.min_aspect), high = std::log(augmentation.max_aspect);
    const double aspect = std::exp(low + static_cast<double>(kernels::uniform(words.word[1])) * (high - low));
    const auto width = std::lround(std::sqrt(area * share * aspect));
    const auto height = std::lround(std::sqrt(area * share / aspect));
    if (width < 1 || height < 1 || width > stored.width || height > stored.height) continue;
    return {below(words.word[2], stored.width - width + 1), below(words.word[3], stored.height - height + 1),
            static_cast<std::int32_t>(width), static_cast<std::int32_t>(height)};
  }
  Augmentation whole = augmentation;
  whole.centre_fraction = 1;
  return centre_window(whole, stored, output);
}

int number_after(std::string_view word, std::string_view name) {
  const std::string_view digits = word.substr(std::min(word.size(), name.size() + 1));
  int value = -1;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec != std::errc() || result.ptr != digits.data() + digits.size() || value < 0 || value > 4096) {
    throw std::runtime_error(
        fmt::format("augmentation {}: expected {}:PIXELS with 0 to 4096 pixels", word, name));
  }
  return value;
}

void parse_word(std::string_view word, Augmentation& augmentation) {
  const std::string_view name = word.substr(0, word.find(':'));
  const bool number = name.size() != word.size();
  if (name == "crop") {
    augmentation.random_crop = true;
    if (number) augmentation.padding = number_after(word, name);
  } else if (name == "cutout") {
    augmentation.cutout = true;
    if (number) augmentation.cutout_size = number_after(word, name);
  } else if (word == "flip") {
    augmentation.flip = true;
  } else if (word == "resized-crop") {
    augmentation.random_resized_crop = true;
  } else if (word != "none") {
    throw std::runtime_error(fmt::format(
        "augmentation '{}': unknown, expected crop[:PADDING], resized-crop, flip, cutout[:SIZE] or none",
        word));
  }
}

}  // namespace

ImageShape Augmentation::output_shape(ImageShape stored) const {
  const ImageShape output{height > 0 ? height : stored.height, width > 0 ? width : stored.width,
                          stored.channels};
  if (random_crop && random_resized_crop) {
    throw std::runtime_error("augmentation: crop and resized-crop exclude each other");
  }
  if (random_crop &&
      (output.height > stored.height + 2 * padding || output.width > stored.width + 2 * padding)) {
    throw std::runtime_error(
        fmt::format("augmentation: cannot crop {}x{} out of images of {}x{} with a padding of {}",
                    output.width, output.height, stored.width, stored.height, padding));
  }
  if (cutout && cutout_size > std::min(output.height, output.width)) {
    throw std::runtime_error(fmt::format("augmentation: cannot blank {}x{} pixels of images of {}x{}",
                                         cutout_size, cutout_size, output.width, output.height));
  }
  if (!(centre_fraction > 0 && centre_fraction <= 1) ||
      !(min_area > 0 && min_area <= max_area && max_area <= 1) ||
      !(min_aspect > 0 && min_aspect <= max_aspect) || padding < 0 || cutout_size < 0) {
    throw std::runtime_error("augmentation: a fraction or range is not within 0 < low <= high <= 1");
  }
  return output;
}

Augmentation parse_augmentation(std::string_view text) {
  Augmentation augmentation;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    parse_word(text.substr(0, comma), augmentation);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return augmentation;
}

AugmentationParameters draw(const Augmentation& augmentation, ImageShape stored, std::uint64_t seed,
                            std::int64_t epoch, std::int64_t sample) {
  const ImageShape output{augmentation.height > 0 ? augmentation.height : stored.height,
                          augmentation.width > 0 ? augmentation.width : stored.width, stored.channels};
  const Draws draws(seed, epoch, sample);
  const kernels::Philox4 words = draws.block(0);
  AugmentationParameters parameters;
  if (augmentation.random_crop) {
    const int padding = augmentation.padding;
    parameters.window = {below(words.word[0], stored.width + 2 * padding - output.width + 1) - padding,
                         below(words.word[1], stored.height + 2 * padding - output.height + 1) - padding,
                         static_cast<std::int32_t>(output.width), static_cast<std::int32_t>(output.height)};
  } else if (augmentation.random_resized_crop) {
    parameters.window = resized_window(augmentation, stored, output, draws);
  } else {
    parameters.window = centre_window(augmentation, stored, output);
  }
  if (augmentation.flip) parameters.flip = static_cast<std::int32_t>(words.word[2] >> 31);
  if (augmentation.cutout) {
    const kernels::Philox4 more = draws.block(1 + kCropTries);
    parameters.cutout_size = augmentation.cutout_size;
    parameters.cutout_x = below(more.word[0], output.width) - augmentation.cutout_size / 2;
    parameters.cutout_y = below(more.word[1], output.height) - augmentation.cutout_size / 2;
  }
  return parameters;
}

}  // namespace convoy::data
