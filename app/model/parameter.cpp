#include "app/model/parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/device/parallel.h"
#include "kernels/device/philox.h"

namespace convoy::app {
namespace {

// Makes a normally distributed number from two random 32-bit integers (Box and Muller 1958).
double normal_from(std::uint32_t a, std::uint32_t b) {
  const double radius = std::sqrt(-2.0 * std::log((a + 1.0) * 0x1p-32));
  return radius * std::cos(2.0 * std::numbers::pi * b * 0x1p-32);
}

}  // namespace

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const unsigned char letter : text) hash = (hash ^ letter) * 0x100000001b3ull;
  return hash;
}

Initializer Initializer::he_normal(double fan) { return normal(std::sqrt(2.0 / fan)); }

std::string fault_in(const ParameterSpec& spec, const std::vector<float>& values) {
  const bool is_variance = spec.key == "running_var";
  const auto wrong = std::ranges::find_if(
      values, [&](float value) { return !std::isfinite(value) || (is_variance && value < 0); });
  if (wrong == values.end()) return {};
  return fmt::format("found {} at index {}, expected {}", *wrong, wrong - values.begin(),
                     is_variance ? "variances of at least 0" : "finite numbers");
}

void initialize(const ParameterSpec& spec, std::uint64_t seed, float* values) {
  if (spec.values) {
    std::ranges::copy(*spec.values, values);
    return;
  }
  const std::uint64_t key = seed ^ hash_of(spec.name);
  const double value = spec.initializer.value;
  const auto draw = [&](std::int64_t i) -> double {
    if (spec.initializer.kind == Initializer::Kind::constant) return value;
    const kernels::Philox4 words = kernels::philox(key, static_cast<std::uint64_t>(i));
    return spec.initializer.kind == Initializer::Kind::normal
               ? value * normal_from(words.word[0], words.word[1])
               : value * (2.0 * kernels::uniform(words.word[0]) - 1.0);
  };
  kernels::parallel_pieces(spec.shape.elements(), kernels::kPiece, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) values[i] = static_cast<float>(draw(i));
  });
}

}  // namespace convoy::app
