#include "app/model/zoo/builder.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace convoy::app::zoo {
namespace {

// Returns the range of sides of input images for which extent_of(side) is `extent`, as a text such
// as "224 to 255".
std::string sides(std::int64_t extent, const std::function<std::int64_t(std::int64_t)>& extent_of) {
  std::int64_t first = 1;
  while (extent_of(first) < extent) ++first;
  std::int64_t end = first;
  while (extent_of(end) == extent) ++end;
  return fmt::format("{} to {}", first, end - 1);
}

}  // namespace

Builder& Builder::add(std::string name, LayerOp op, std::vector<LayerId> inputs) {
  last_ = network_.add(std::move(name), std::move(op), std::move(inputs));
  return *this;
}

Builder& Builder::from(LayerId layer) {
  last_ = layer;
  return *this;
}

Conv2d with_uniform_weights(Conv2d conv, std::int64_t channels) {
  const double fan_in = static_cast<double>(channels / conv.groups) * conv.kernel[0] * conv.kernel[1];
  conv.weight_initializer = conv.bias_initializer = Initializer::uniform(1.0 / std::sqrt(fan_in));
  return conv;
}

void add_adaptive_average(Builder& net, const std::string& name, std::int64_t extent,
                          const std::function<std::int64_t(std::int64_t)>& extent_of) {
  const Shape& image = net.shape();
  if (image[2] == extent && image[3] == extent) return;
  if (image[2] != image[3] || image[2] % extent != 0)
    throw std::runtime_error(
        fmt::format("network {}, layer {}: averages {} to {}x{}, expected a multiple of that: square input "
                    "images with a side of {} or {} pixels",
                    net.name(), name, image.to_string(), extent, extent, sides(extent, extent_of),
                    sides(2 * extent, extent_of)));
  const int window = static_cast<int>(image[2] / extent);
  net.add(name, Pool::average(window, window));
}

}  // namespace convoy::app::zoo
