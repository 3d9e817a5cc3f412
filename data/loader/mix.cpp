#include "data/loader/mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "data/loader/sample_draws.h"
#include "kernels/device/philox.h"

namespace convoy::data {
namespace {

// XORed into the seed, so that these random numbers differ from those for other purposes.
constexpr std::uint64_t kPurpose = 0x6D69782073746570ull;

// The sequence of random 32-bit words for one step.
class Words {
 public:
  Words(std::uint64_t seed, std::int64_t epoch, std::int64_t step)
      : key_(seed ^ kPurpose),
        step_(static_cast<std::uint64_t>(step)),
        epoch_(static_cast<std::uint64_t>(epoch) << 20) {}

  std::uint32_t next() {
    if (used_ % 4 == 0) block_ = kernels::philox(key_, step_, epoch_ + used_ / 4);
    return block_.word[used_++ % 4];
  }
  // Returns a uniform value in (0, 1) with 52 random bits.
  double uniform() {
    const std::uint64_t high = next(), low = next();
    return (static_cast<double>((high << 32 | low) >> 12) + 0.5) * 0x1p-52;
  }
  // Returns a standard normal value, by Marsaglia's polar method.
  double normal() {
    for (;;) {
      const double u = 2 * uniform() - 1, v = 2 * uniform() - 1, s = u * u + v * v;
      if (s > 0 && s < 1) return u * std::sqrt(-2 * std::log(s) / s);
    }
  }

 private:
  std::uint64_t key_, step_, epoch_, used_ = 0;
  kernels::Philox4 block_{};
};

// Returns the logarithm of a Gamma(shape, 1) variable (Marsaglia and Tsang, ACM TOMS 2000). For a
// shape below 1, draws a variable with shape + 1 and multiplies it by uniform^(1 / shape). For
// small shapes that factor would underflow; its logarithm does not.
double log_gamma_variable(double shape, Words& words) {
  if (shape < 1) {
    const double raised = log_gamma_variable(shape + 1, words);
    return raised + std::log(words.uniform()) / shape;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = words.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(words.uniform()) < x * x / 2 + d * (1 - v + std::log(v))) return std::log(d * v);
  }
}

// Returns a random number with the distribution Beta(alpha, alpha).
double draw_share(double alpha, Words& words) {
  const double a = log_gamma_variable(alpha, words), b = log_gamma_variable(alpha, words);
  return 1 / (1 + std::exp(b - a));
}

// Returns the rectangle of cutmix, whose centre is a random pixel. Before the rectangle is clipped
// at the border, its area is the fraction 1 - share of the image.
kernels::MixParameters cut(double share, std::int64_t height, std::int64_t width, Words& words) {
  const double half = 0.5 * std::sqrt(1 - share);
  const auto side = [&](std::int64_t extent, std::int32_t& first, std::int32_t& size) {
    const std::int32_t centre = uniform_below(words.next(), extent);
    const auto reach = static_cast<std::int32_t>(half * static_cast<double>(extent));
    first = std::max(centre - reach, 0);
    size = std::min(centre + reach, static_cast<std::int32_t>(extent)) - first;
  };
  kernels::MixParameters mix;
  side(width, mix.x, mix.width);
  side(height, mix.y, mix.height);
  const double cut = static_cast<double>(mix.width) * mix.height;
  mix.label_share = static_cast<float>(1 - cut / static_cast<double>(height * width));
  return mix;
}

}  // namespace

void MixSettings::check() const {
  // Limit alpha. With a much larger value every share would be 1/2 in float32.
  for (const auto& [name, alpha] : {std::pair{"mixup", mixup}, {"cutmix", cutmix}})
    if (!(alpha >= 0 && alpha <= 1000))
      throw std::runtime_error(fmt::format("{}: alpha {}, expected 0 (none) to 1000", name, alpha));
}

kernels::MixParameters draw_mix(const MixSettings& settings, std::uint64_t seed, std::int64_t epoch,
                                std::int64_t step, std::int64_t height, std::int64_t width) {
  if (!settings.any()) return {};
  Words words(seed, epoch, step);
  const bool second = words.next() >> 31 != 0;  // picks cutmix if both are set
  const bool cuts = settings.mixup > 0 ? settings.cutmix > 0 && second : true;
  const double share = draw_share(static_cast<double>(cuts ? settings.cutmix : settings.mixup), words);
  if (cuts) return cut(share, height, width, words);
  const auto pixel_share = static_cast<float>(share);
  return {pixel_share, pixel_share, 0, 0, 0, 0};
}

}  // namespace convoy::data
