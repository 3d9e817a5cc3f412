#include "data/loader/augmentation.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace convoy::data {
namespace {

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

float probability_after(std::string_view word, std::string_view name) {
  const std::string_view digits = word.substr(std::min(word.size(), name.size() + 1));
  float value = -1;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec != std::errc() || result.ptr != digits.data() + digits.size() ||
      !(value >= 0 && value <= 1)) {
    throw std::runtime_error(fmt::format("augmentation {}: expected {}:PROBABILITY with 0 to 1", word, name));
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
  } else if (name == "erase") {
    augmentation.erasing = number ? probability_after(word, name) : 0.5f;
  } else if (word == "flip") {
    augmentation.flip = true;
  } else if (word == "resized-crop") {
    augmentation.random_resized_crop = true;
  } else if (word != "none") {
    throw std::runtime_error(
        fmt::format("augmentation '{}': unknown, expected crop[:PADDING], resized-crop, flip, "
                    "cutout[:SIZE], erase[:PROBABILITY] or none",
                    word));
  }
}

bool is_range(float low, float high, float most) { return low > 0 && low <= high && high <= most; }

void check_ranges(const Augmentation& a) {
  constexpr float kAnyAspect = 1e6f;
  if (!is_range(a.min_area, a.max_area, 1) || !is_range(a.min_aspect, a.max_aspect, kAnyAspect) ||
      !is_range(a.min_erased_area, a.max_erased_area, 1) ||
      !is_range(a.min_erased_aspect, a.max_erased_aspect, kAnyAspect) ||
      !(a.erasing >= 0 && a.erasing <= 1) || a.padding < 0 || a.cutout_size < 0 || a.resize_short < 0) {
    throw std::runtime_error("augmentation: a fraction or range is not within 0 < low <= high <= 1");
  }
}

}  // namespace

ImageShape Augmentation::output_shape(ImageShape stored) const {
  const ImageShape output{height > 0 ? height : stored.height, width > 0 ? width : stored.width,
                          stored.channels};
  const bool known = stored.height > 0 && stored.width > 0;
  check_ranges(*this);
  if (output.height == 0 || output.width == 0) {
    throw std::runtime_error("augmentation: the images differ in size, expected an output size");
  }
  if (random_crop && random_resized_crop) {
    throw std::runtime_error("augmentation: crop and resized-crop exclude each other");
  }
  if (random_crop && known &&
      (output.height > stored.height + 2 * padding || output.width > stored.width + 2 * padding)) {
    throw std::runtime_error(
        fmt::format("augmentation: cannot crop {}x{} out of images of {}x{} with a padding of {}",
                    output.width, output.height, stored.width, stored.height, padding));
  }
  if (cutout && cutout_size > std::min(output.height, output.width)) {
    throw std::runtime_error(fmt::format("augmentation: cannot blank {}x{} pixels of images of {}x{}",
                                         cutout_size, cutout_size, output.width, output.height));
  }
  if (resize_short > 0 && resize_short < std::max(output.height, output.width)) {
    throw std::runtime_error(
        fmt::format("augmentation: cannot take {}x{} from images whose shorter side is resized to {}",
                    output.width, output.height, resize_short));
  }
  image_ops.check(output);
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

}  // namespace convoy::data
