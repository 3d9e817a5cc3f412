#include <algorithm>

#include "app/model/weights/weights.h"

namespace convoy::app {

std::vector<float> adapt_channels(const std::vector<float>& values, std::int64_t from, std::int64_t to,
                                  std::int64_t pixels) {
  const std::int64_t filters = std::ssize(values) / (from * pixels);
  const float factor = to == 1 ? 1.0f : static_cast<float>(from) / static_cast<float>(to);
  std::vector<float> adapted(static_cast<std::size_t>(filters * to * pixels), 0.0f);
  for (std::int64_t filter = 0; filter < filters; ++filter)
    for (std::int64_t channel = 0; channel < std::max(from, to); ++channel) {
      if (to > 1 && channel >= to) break;
      const float* source = values.data() + (filter * from + channel % from) * pixels;
      float* target = adapted.data() + (filter * to + (to == 1 ? 0 : channel)) * pixels;
      for (std::int64_t i = 0; i < pixels; ++i) target[i] += factor * source[i];
    }
  return adapted;
}

}  // namespace convoy::app
