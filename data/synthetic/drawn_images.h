// Draws a data set: figures in random position, size, rotation and colour on cluttered, noisy
// backgrounds. Whether the figure or the background is brighter is random. So a weighted sum of
// pixels says little about the class, and a linear model is far worse than a small convolutional
// network.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/image_set.h"

namespace convoy::data {

struct DrawnSet {
  std::int32_t classes = 10;  // 2 to 36: twelve plain figures, then twelve striped, then chequered
  std::int32_t size = 32;     // pixels per side
  std::int64_t train = 20000, test = 2000;
  std::uint64_t seed = 1;

  std::vector<std::string> class_names() const;
  // Draws image `sample` of a split as uint8 [size, size, 3]. Its class is sample % classes. The
  // pixels depend only on the arguments and on the settings above.
  void draw(Split split, std::int64_t sample, std::uint8_t* pixels) const;
};

// Draws the whole set into a store, on `threads` threads, or on one per processor if threads <= 0.
// Throws std::runtime_error that names the setting out of range or the file that cannot be written.
void write_drawn_set(const DrawnSet& set, const std::filesystem::path& destination, int threads = 0);

}  // namespace convoy::data
