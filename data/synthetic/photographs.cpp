#include "data/synthetic/photographs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "data/atomic_file.h"
#include "data/convert/jpeg_encode.h"
#include "data/parallel.h"
#include "kernels/device/philox.h"

namespace convoy::data {
namespace {

// XORed into the seed, so that these random numbers differ from those for other purposes.
constexpr std::uint64_t kPurpose = 0x70686f74ull << 24;
constexpr std::int64_t kDiscs = 300;
constexpr float kSmallestDisc = 0.012f, kLargestDisc = 0.6f;  // radii as fractions of the image's longer side
constexpr int kOctaves = 7;
constexpr float kNoise = 1.2f;  // deviation of the sensor's noise, for pixel values from 0 to 255

using Plane = std::vector<float>;

float signed_uniform(std::uint32_t word) { return 2 * kernels::uniform(word) - 1; }

// Returns an approximately normal value with mean 0 and deviation 1.
float normal(std::uint32_t word) {
  const std::uint32_t sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24);
  return (static_cast<float>(sum) - 510) / 147.8f;
}

// Adds one octave of noise: random values at lattice points that are `cell` pixels apart,
// interpolated smoothly and multiplied by `strength`.
void add_octave(Plane& plane, std::int64_t height, std::int64_t width, std::int64_t cell, float strength,
                std::uint64_t seed) {
  const auto lattice = [&](std::int64_t y, std::int64_t x) {
    return signed_uniform(kernels::philox(seed, static_cast<std::uint64_t>(y << 20 | x)).word[0]);
  };
  const std::int64_t columns = width / cell + 2;
  std::vector<float> above(static_cast<std::size_t>(columns)), below(above);
  const auto smooth = [](float t) { return t * t * (3 - 2 * t); };
  for (std::int64_t y = 0; y < height; ++y) {
    if (y % cell == 0) {
      for (std::int64_t x = 0; x < columns; ++x) {
        above[static_cast<std::size_t>(x)] = lattice(y / cell, x);
        below[static_cast<std::size_t>(x)] = lattice(y / cell + 1, x);
      }
    }
    const float down = smooth(static_cast<float>(y % cell) / static_cast<float>(cell));
    for (std::int64_t x = 0; x < width; ++x) {
      const auto left = static_cast<std::size_t>(x / cell);
      const float right = smooth(static_cast<float>(x % cell) / static_cast<float>(cell));
      const float top = above[left] + right * (above[left + 1] - above[left]);
      const float bottom = below[left] + right * (below[left + 1] - below[left]);
      plane[static_cast<std::size_t>(y * width + x)] += strength * (top + down * (bottom - top));
    }
  }
}

struct Disc {
  float x, y, radius, texture, shade_x, shade_y;
  std::array<float, 3> colour;
};

Disc disc(std::uint64_t seed, std::uint64_t number, std::int64_t height, std::int64_t width) {
  const auto a = kernels::philox(seed, number, 0), b = kernels::philox(seed, number, 1);
  const auto c = kernels::philox(seed, number, 2);
  const float side = static_cast<float>(std::max(height, width));
  // The density of the radii is proportional to radius^-3. So discs of every size class cover the
  // same total area.
  const float u = kernels::uniform(a.word[0]);
  const float least = 1 / (kSmallestDisc * kSmallestDisc), most = 1 / (kLargestDisc * kLargestDisc);
  const float brightness = 30 + 190 * kernels::uniform(b.word[0]);
  Disc result{};
  result.radius = side / std::sqrt(least + u * (most - least));
  result.x = static_cast<float>(width) * kernels::uniform(a.word[1]);
  result.y = static_cast<float>(height) * kernels::uniform(a.word[2]);
  result.texture = 0.1f + 0.9f * std::pow(kernels::uniform(a.word[3]), 2.0f);
  for (std::size_t i = 0; i < 3; ++i) result.colour[i] = brightness + 45 * signed_uniform(b.word[i + 1]);
  result.shade_x = 30 * signed_uniform(c.word[0]);
  result.shade_y = 30 * signed_uniform(c.word[1]);
  return result;
}

// Returns for every pixel the number of the topmost disc. Discs with lower numbers are on top.
std::vector<int> draw_discs(const std::vector<Disc>& discs, std::int64_t height, std::int64_t width) {
  std::vector<int> top(static_cast<std::size_t>(height * width), static_cast<int>(discs.size()) - 1);
  for (int i = static_cast<int>(discs.size()) - 2; i >= 0; --i) {
    const Disc& d = discs[static_cast<std::size_t>(i)];
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(d.y - d.radius));
    const auto last = std::min(height - 1, static_cast<std::int64_t>(d.y + d.radius));
    for (std::int64_t y = first; y <= last; ++y) {
      const float dy = static_cast<float>(y) - d.y, across = d.radius * d.radius - dy * dy;
      if (across <= 0) continue;
      const float half = std::sqrt(across);
      const auto begin = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(d.x - half)));
      const auto end = std::min(width, static_cast<std::int64_t>(d.x + half) + 1);
      if (begin < end) std::fill(top.begin() + y * width + begin, top.begin() + y * width + end, i);
    }
  }
  return top;
}

}  // namespace

Image draw_photograph(std::int64_t height, std::int64_t width, std::uint64_t seed) {
  seed ^= kPurpose;
  std::vector<Disc> discs;
  for (std::uint64_t i = 0; i < kDiscs; ++i) discs.push_back(disc(seed, i, height, width));
  const std::vector<int> top = draw_discs(discs, height, width);
  Plane texture(static_cast<std::size_t>(height * width));
  for (int octave = 0; octave < kOctaves; ++octave)
    add_octave(texture, height, width, std::int64_t{1} << octave, 14,
               seed + 1000 + static_cast<std::uint64_t>(octave));
  Image image{{height, width, 3}, std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * 3))};
  for (std::size_t i = 0; i < top.size(); ++i) {
    const Disc& d = discs[static_cast<std::size_t>(top[i])];
    const float x = static_cast<float>(static_cast<std::int64_t>(i) % width),
                y = static_cast<float>(static_cast<std::int64_t>(i) / width);
    const float shade =
        std::clamp(((x - d.x) * d.shade_x + (y - d.y) * d.shade_y) / d.radius, -40.0f, 40.0f) +
        d.texture * texture[i];
    const auto noise = kernels::philox(seed + 1, i);
    for (std::size_t c = 0; c < 3; ++c) {
      const float value = d.colour[c] + shade + kNoise * normal(noise.word[c]);
      image.pixels[i * 3 + c] = static_cast<std::uint8_t>(std::clamp(value + 0.5f, 0.0f, 255.0f));
    }
  }
  return image;
}

void write_photographs(const PhotographFolder& made, const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::create_directories(folder, error))
    throw std::runtime_error(fmt::format("{}: {}, expected a new folder", folder.string(),
                                         error ? error.message() : "is there already"));
  for (const Split split : {Split::train, Split::test}) {
    const std::int64_t count = split == Split::train ? made.train : made.test;
    for (std::int64_t label = 0; label < made.classes; ++label)
      std::filesystem::create_directories(folder / name_of(split) / fmt::format("{:04}", label));
    parallel_for(static_cast<std::size_t>(count), made.threads, [&](std::size_t i) {
      const auto number = static_cast<std::int64_t>(i);
      const Image image = draw_photograph(made.height, made.width,
                                          made.seed << 33 | static_cast<std::uint64_t>(split) << 32 | i);
      const auto file = encode_jpeg_file(image, made.quality);
      const auto path =
          folder / name_of(split) / fmt::format("{:04}", number % made.classes) / fmt::format("{:08}.jpg", i);
      write_file_atomically(path, {reinterpret_cast<const char*>(file.data()), file.size()},
                            AtomicFile::Sync::no);
    });
  }
}

}  // namespace convoy::data
