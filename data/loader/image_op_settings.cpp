#include "data/loader/image_op_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <utility>

#include "data/loader/sample_draws.h"
#include "kernels/device/image_ops.h"

namespace convoy::data {
namespace {

using kernels::ImageOp;
using kernels::ImageOpKind;

// Returns value number `bin` of kMagnitudes equally spaced values from `first` to `last`. As in
// torch.linspace, it is computed in float32 from the nearer end.
double spaced(double first, double last, int bin) {
  const auto from = static_cast<float>(first), to = static_cast<float>(last);
  const float step = (to - from) / static_cast<float>(kMagnitudes - 1);
  if (bin < kMagnitudes / 2) return from + step * static_cast<float>(bin);
  return to - step * static_cast<float>(kMagnitudes - 1 - bin);
}

ImageOp affine(double a, double b, double c, double d, double e, double f) {
  const auto fixed = [](double value) { return static_cast<std::int32_t>(std::floor(value * 65536 + 0.5)); };
  ImageOp op{ImageOpKind::affine, 0, {}};
  // Shift by half a pixel, because the centre of output pixel (0, 0) is at (0.5, 0.5).
  const std::array values{a, b, c + a * 0.5 + b * 0.5, d, e, f + d * 0.5 + e * 0.5};
  std::ranges::transform(values, op.matrix, fixed);
  return op;
}

ImageOp rotation(double degrees, ImageShape shape) {
  const double angle = -degrees * std::numbers::pi / 180;
  // Round sine and cosine, so that the cosine of 90 degrees is exactly 0.
  const auto rounded = [](double value) { return std::round(value * 1e15) / 1e15; };
  const double c = rounded(std::cos(angle)), s = rounded(std::sin(angle));
  const double x = static_cast<double>(shape.width) / 2, y = static_cast<double>(shape.height) / 2;
  return affine(c, s, c * -x + s * -y + x, -s, c, -s * -x + c * -y + y);
}

ImageOp with_factor(ImageOpKind kind, double factor) {
  if (static_cast<float>(factor) == 1) return {};
  return {kind, static_cast<float>(factor), {}};
}

class OpList {
 public:
  explicit OpList(std::span<ImageOp, kernels::kMostImageOps> ops) : ops_(ops) {
    std::ranges::fill(ops, ImageOp{});
  }
  void add(const ImageOp& op) {
    if (op.kind != ImageOpKind::none) ops_[count_++] = op;
  }

 private:
  std::span<ImageOp, kernels::kMostImageOps> ops_;
  std::size_t count_ = 0;
};

void draw_jitter(const ColorJitter& jitter, const SampleDraws& draws, OpList& list) {
  const kernels::Philox4 words = draws.block(kJitterBlock);
  const auto factor = [&](ImageOpKind kind, int word, double x) {
    return x > 0 ? with_factor(kind, uniform_between(words.word[word], std::max(0.0, 1 - x), 1 + x))
                 : ImageOp{};
  };
  const double hue = jitter.hue;
  std::array ops{factor(ImageOpKind::brightness, 0, jitter.brightness),
                 factor(ImageOpKind::contrast, 1, jitter.contrast),
                 factor(ImageOpKind::saturation, 2, jitter.saturation),
                 hue > 0 ? hue_op(uniform_between(words.word[3], -hue, hue)) : ImageOp{}};
  // Choose one of the 24 orders of the four operations at random.
  std::int32_t order = uniform_below(draws.block(kJitterBlock + 1).word[0], 24);
  for (int left = 4; left > 1; --left) {
    std::swap(ops[left - 1], ops[order % left]);
    order /= left;
  }
  for (const ImageOp& op : ops) list.add(op);
}

}  // namespace

int ImageOpSettings::most() const {
  const int automatic = auto_augment == AutoAugment::none      ? 0
                        : auto_augment == AutoAugment::trivial ? 1
                                                               : rand_operations;
  return jitter.count() + automatic;
}

void ImageOpSettings::check(ImageShape output) const {
  const std::pair<const char*, float> factors[] = {
      {"brightness", jitter.brightness}, {"contrast", jitter.contrast}, {"saturation", jitter.saturation}};
  for (const auto& [name, x] : factors)
    if (!(x >= 0 && std::isfinite(x)))
      throw std::runtime_error(fmt::format("colour jitter: {} {}, expected at least 0", name, x));
  if (!(jitter.hue >= 0 && jitter.hue <= 0.5f))
    throw std::runtime_error(fmt::format("colour jitter: hue {}, expected 0 to 0.5", jitter.hue));
  if (auto_augment == AutoAugment::rand) {
    if (rand_operations < 1 || most() > kernels::kMostImageOps)
      throw std::runtime_error(fmt::format("RandAugment: {} operations, expected 1 to {}", rand_operations,
                                           kernels::kMostImageOps - jitter.count()));
    if (rand_magnitude < 0 || rand_magnitude >= kMagnitudes)
      throw std::runtime_error(
          fmt::format("RandAugment: magnitude {}, expected 0 to {}", rand_magnitude, kMagnitudes - 1));
  }
  if (most() == 0) return;
  try {
    kernels::check_image_op_shape("image operations", output.height, output.width, output.channels);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(error.what());
  }
}

double magnitude_of(AutoAugment policy, AugmentOp op, int bin, ImageShape shape) {
  const bool wide = policy == AutoAugment::trivial;
  switch (op) {
    case AugmentOp::identity:
    case AugmentOp::autocontrast:
    case AugmentOp::equalize:
      return 0;
    case AugmentOp::shear_x:
    case AugmentOp::shear_y:
      return spaced(0, wide ? 0.99 : 0.3, bin);
    case AugmentOp::translate_x:
    case AugmentOp::translate_y: {
      const std::int64_t extent = op == AugmentOp::translate_x ? shape.width : shape.height;
      return spaced(0, wide ? 32 : 150.0 / 331.0 * static_cast<double>(extent), bin);
    }
    case AugmentOp::rotate:
      return spaced(0, wide ? 135 : 30, bin);
    case AugmentOp::brightness:
    case AugmentOp::color:
    case AugmentOp::contrast:
    case AugmentOp::sharpness:
      return spaced(0, wide ? 0.99 : 0.9, bin);
    case AugmentOp::posterize:
      return 8 - std::round(bin / ((kMagnitudes - 1) / (wide ? 6.0 : 4.0)));
    case AugmentOp::solarize:
      return spaced(255, 0, bin);
  }
  throw std::logic_error("an unknown operation of an augmentation");
}

bool signed_magnitude(AugmentOp op) { return op >= AugmentOp::shear_x && op <= AugmentOp::sharpness; }

kernels::ImageOp image_op(AugmentOp op, double magnitude, ImageShape shape) {
  const bool moves = op >= AugmentOp::shear_x && op <= AugmentOp::rotate;
  if (moves && magnitude == 0) return {};
  switch (op) {
    case AugmentOp::identity:
      return {};
    case AugmentOp::shear_x:
      return affine(1, magnitude, 0, 0, 1, 0);
    case AugmentOp::shear_y:
      return affine(1, 0, 0, magnitude, 1, 0);
    case AugmentOp::translate_x:
      return affine(1, 0, -std::trunc(magnitude), 0, 1, 0);
    case AugmentOp::translate_y:
      return affine(1, 0, 0, 0, 1, -std::trunc(magnitude));
    case AugmentOp::rotate:
      return rotation(magnitude, shape);
    case AugmentOp::brightness:
      return with_factor(ImageOpKind::brightness, 1 + magnitude);
    case AugmentOp::color:
      return with_factor(ImageOpKind::saturation, 1 + magnitude);
    case AugmentOp::contrast:
      return with_factor(ImageOpKind::contrast, 1 + magnitude);
    case AugmentOp::sharpness:
      return with_factor(ImageOpKind::sharpness, 1 + magnitude);
    case AugmentOp::posterize:
      if (magnitude >= 8) return {};
      return {ImageOpKind::posterize, static_cast<float>(256 - (1 << (8 - static_cast<int>(magnitude)))), {}};
    case AugmentOp::solarize:
      return {ImageOpKind::solarize, static_cast<float>(magnitude), {}};
    case AugmentOp::autocontrast:
      return {ImageOpKind::autocontrast, 0, {}};
    case AugmentOp::equalize:
      return {ImageOpKind::equalize, 0, {}};
  }
  throw std::logic_error("an unknown operation of an augmentation");
}

kernels::ImageOp hue_op(double turn) {
  return {ImageOpKind::hue, static_cast<float>(static_cast<int>(turn * 255) & 255), {}};
}

void draw_image_ops(const ImageOpSettings& settings, ImageShape output, std::uint64_t seed,
                    std::int64_t epoch, std::int64_t sample,
                    std::span<kernels::ImageOp, kernels::kMostImageOps> ops) {
  const SampleDraws draws(seed, epoch, sample);
  OpList list(ops);
  const int jitters = settings.jitter.count();
  if (jitters > 0) draw_jitter(settings.jitter, draws, list);
  for (int i = 0; i < settings.most() - jitters; ++i) {
    const kernels::Philox4 words = draws.block(kAutoAugmentBlock + i);
    const auto op = static_cast<AugmentOp>(uniform_below(words.word[0], kAugmentOps));
    const bool rand = settings.auto_augment == AutoAugment::rand;
    const int bin = rand ? settings.rand_magnitude : uniform_below(words.word[1], kMagnitudes);
    const double magnitude = magnitude_of(settings.auto_augment, op, bin, output);
    list.add(image_op(op, signed_magnitude(op) && words.word[2] >> 31 != 0 ? -magnitude : magnitude, output));
  }
}

}  // namespace convoy::data
