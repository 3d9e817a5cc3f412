// Cuts a window out of an image and brings it to another size: bilinear where it is enlarged, and with the
// triangle filter widened to the scale where it is reduced, so that fine detail is averaged and not dropped
// (what Pillow and torchvision call antialiased bilinear).
#pragma once

#include <cstdint>
#include <vector>

#include "data/image/window.h"
#include "data/image_set.h"

namespace convoy::data {

// Keeps its buffers from call to call: one a thread.
class Resampler {
 public:
  Resampler() = default;
  Resampler(Resampler&&) = default;
  Resampler(const Resampler&) = delete;  // a copy would not have the room that reserve() made
  Resampler& operator=(const Resampler&) = delete;

  // Makes room for the largest window of such images, so that resample() allocates nothing.
  void reserve(ImageShape shape, std::int64_t height, std::int64_t width);
  // The window, which must lie inside the image, as float32 rows [height][width * C] on the scale 0..255. The
  // result is valid until the next call.
  const float* resample(const std::uint8_t* image, ImageShape shape, Window window, std::int64_t height,
                        std::int64_t width);

 private:
  // For every output position the first input position and `taps` weights that sum to 1.
  struct Filter {
    std::int64_t taps = 0;
    std::vector<std::int32_t> first;
    std::vector<float> weight;
    static std::int64_t taps_for(std::int64_t inputs, std::int64_t outputs);
    void reserve(std::int64_t inputs, std::int64_t outputs);
    void prepare(std::int64_t inputs, std::int64_t outputs);
  };

  void shrink_rows(const std::uint8_t* image, ImageShape shape, Window window, std::int64_t width);
  void shrink_row(float* to, std::int64_t width, std::int64_t channels) const;

  Filter horizontal_, vertical_;
  std::vector<float> row_;   // one of the window's rows
  std::vector<float> rows_;  // the window's rows at the output's width
  std::vector<float> result_;
};

}  // namespace convoy::data
