#include "data/synthetic/drawn_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "data/parallel.h"
#include "data/store/writer.h"
#include "data/synthetic/shapes.h"
#include "kernels/device/philox.h"

namespace convoy::data {
namespace {

// XORed into the seed, so that these random numbers differ from those for other purposes.
constexpr std::uint64_t kPurpose = 0x64726177ull << 24;
constexpr int kClutter = 4;
constexpr std::int64_t kBlock = 1024;  // images drawn between two writes
constexpr std::array<const char*, 3> kTextures{"", "striped_", "chequered_"};

// The sequence of random numbers for one image.
class ImageRandom {
 public:
  ImageRandom(std::uint64_t seed, Split split, std::int64_t sample)
      : key_(seed ^ kPurpose),
        sample_(static_cast<std::uint64_t>(sample) << 1 | static_cast<std::uint64_t>(split)) {}
  std::uint32_t word() {
    if (used_ == 4) {
      block_ = kernels::philox(key_, sample_, counter_++);
      used_ = 0;
    }
    return block_.word[used_++];
  }
  float between(float low, float high) { return low + (high - low) * kernels::uniform(word()); }

 private:
  std::uint64_t key_, sample_, counter_ = 0;
  kernels::Philox4 block_{};
  int used_ = 4;
};

using Colour = std::array<float, 3>;

// Chooses a random colour whose brightness is close to `brightness`.
Colour colour(ImageRandom& random, float brightness) {
  Colour result{};
  for (float& channel : result) channel = std::clamp(brightness + random.between(-0.18f, 0.18f), 0.0f, 1.0f);
  return result;
}

// The position, rotation and size of a figure. own() converts coordinates of the image (-1 … 1) to
// coordinates of the figure.
struct Pose {
  float x, y, cosine, sine, across, along;

  Pose(ImageRandom& random, float smallest, float largest, float furthest) {
    const float angle = random.between(0, 2 * std::numbers::pi_v<float>);
    const float size = random.between(smallest, largest), aspect = random.between(0.85f, 1.18f);
    const float room = std::min(furthest, 1.05f - size);
    x = random.between(-room, room);
    y = random.between(-room, room);
    cosine = std::cos(angle);
    sine = std::sin(angle);
    across = 1 / (size * aspect);
    along = aspect / size;
  }
  std::array<float, 2> own(float image_x, float image_y) const {
    const float dx = image_x - x, dy = image_y - y;
    return {(cosine * dx + sine * dy) * across, (cosine * dy - sine * dx) * along};
  }
};

// Returns the fraction of a pixel that the figure covers. `distance` is the signed distance from
// the figure's edge, and `pixel` is the size of a pixel, both in coordinates of the figure.
float coverage(float distance, float pixel) { return std::clamp(0.5f - distance / pixel, 0.0f, 1.0f); }

bool in_texture(int texture, float x, float y) {
  const bool odd_row = (static_cast<int>(std::floor(y * 3.0f)) & 1) != 0;
  if (texture == 1) return odd_row;
  const bool odd_column = (static_cast<int>(std::floor(x * 3.0f)) & 1) != 0;
  return texture == 2 && odd_row != odd_column;
}

struct Scene {
  std::array<Colour, 2> background;  // colours at both ends of a gradient
  float gradient_x, gradient_y;
  std::array<Colour, 2> figure;  // colours of the figure and of its texture
  Pose pose;
  struct Speck {
    Pose pose;
    Colour colour;
    float length;
  };
  std::vector<Speck> clutter;
  float noise;

  explicit Scene(ImageRandom& random) : pose(random, 0.45f, 0.8f, 0.35f) {
    // Make the figure differ in brightness from the background, so that it is visible. The sign is
    // random: the figure is brighter or darker.
    const float middle = random.between(0.35f, 0.65f), gap = random.between(0.2f, 0.35f);
    const float sign = (random.word() & 1) != 0 ? 1.0f : -1.0f;
    for (auto& end : background) end = colour(random, middle - sign * gap + random.between(-0.1f, 0.1f));
    figure[0] = colour(random, middle + sign * gap);
    figure[1] = colour(random, middle - sign * gap * 0.6f);
    const float direction = random.between(0, 2 * std::numbers::pi_v<float>);
    gradient_x = std::cos(direction) / 2;
    gradient_y = std::sin(direction) / 2;
    for (int i = 0; i < kClutter; ++i) {
      clutter.push_back(
          {Pose(random, 0.08f, 0.2f, 1), colour(random, random.between(0.2f, 0.8f)), random.between(1, 3)});
    }
    noise = random.between(0.02f, 0.1f);
  }

  Colour at(float x, float y, float pixel, int shape, int texture) const {
    const float share = std::clamp(0.5f + x * gradient_x + y * gradient_y, 0.0f, 1.0f);
    Colour result{};
    for (std::size_t c = 0; c < 3; ++c) {
      result[c] = background[0][c] + share * (background[1][c] - background[0][c]);
    }
    const auto cover = [&](const Colour& over, float amount) {
      for (std::size_t c = 0; c < 3; ++c) result[c] += amount * (over[c] - result[c]);
    };
    for (const Speck& speck : clutter) {
      const auto [u, v] = speck.pose.own(x, y);
      cover(speck.colour,
            coverage(std::max(std::abs(u) - speck.length, std::abs(v) - 0.4f), pixel * speck.pose.across));
    }
    const auto [u, v] = pose.own(x, y);
    cover(figure[in_texture(texture, u, v) ? 1 : 0],
          coverage(distance_to_figure(shape, u, v), pixel * pose.across));
    return result;
  }
};

// Returns an approximately normal value (mean 0, deviation 1) from the sum of a word's four bytes.
float noise_of(std::uint32_t word) {
  const std::uint32_t sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24);
  return (static_cast<float>(sum) - 510.0f) / 147.8f;
}

void check(const DrawnSet& set) {
  const std::int32_t most = kFigures * static_cast<std::int32_t>(kTextures.size());
  if (set.classes < 2 || set.classes > most) {
    throw std::runtime_error(fmt::format("--classes {}: expected 2 to {}", set.classes, most));
  }
  if (set.size < 8 || set.size > 4096) {
    throw std::runtime_error(fmt::format("--size {}: expected 8 to 4096", set.size));
  }
  if (set.train < 1 || set.test < 1) {
    throw std::runtime_error(
        fmt::format("--train {} --test {}: expected at least 1 of each", set.train, set.test));
  }
}

}  // namespace

std::vector<std::string> DrawnSet::class_names() const {
  std::vector<std::string> names;
  for (int i = 0; i < classes; ++i) {
    names.push_back(fmt::format("{}{}", kTextures.at(static_cast<std::size_t>(i / kFigures)),
                                name_of_figure(i % kFigures)));
  }
  return names;
}

void DrawnSet::draw(Split split, std::int64_t sample, std::uint8_t* pixels) const {
  ImageRandom random(seed, split, sample);
  const auto label = static_cast<int>(sample % classes);
  const Scene scene(random);
  const float pixel = 2.0f / static_cast<float>(size);
  for (int row = 0; row < size; ++row) {
    for (int column = 0; column < size; ++column) {
      const float x = (static_cast<float>(column) + 0.5f) * pixel - 1;
      const float y = (static_cast<float>(row) + 0.5f) * pixel - 1;
      for (const float channel : scene.at(x, y, pixel, label % kFigures, label / kFigures)) {
        const float value = channel + scene.noise * noise_of(random.word());
        *pixels++ = static_cast<std::uint8_t>(std::clamp(value * 255 + 0.5f, 0.0f, 255.0f));
      }
    }
  }
}

void write_drawn_set(const DrawnSet& set, const std::filesystem::path& destination, int threads) {
  check(set);
  const ImageShape shape{set.size, set.size, 3};
  StoreWriter writer(destination, shape, set.class_names(), {set.train, set.test});
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> labels;
  for (const Split split : {Split::train, Split::test}) {
    const std::int64_t count = split == Split::train ? set.train : set.test;
    for (std::int64_t first = 0; first < count; first += kBlock) {
      const auto block = static_cast<std::size_t>(std::min(kBlock, count - first));
      images.resize(block * static_cast<std::size_t>(shape.bytes()));
      labels.resize(block);
      parallel_for(block, threads, [&](std::size_t i) {
        const std::int64_t sample = first + static_cast<std::int64_t>(i);
        labels[i] = static_cast<std::int32_t>(sample % set.classes);
        set.draw(split, sample, images.data() + i * static_cast<std::size_t>(shape.bytes()));
      });
      writer.write(split, first, images, labels);
    }
  }
  writer.finish();
}

}  // namespace convoy::data
