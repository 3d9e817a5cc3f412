// Implements place() and place_in_whole() (augmentation.h). From the random parameters of a sample,
// they compute which pixels to read and the transform that makes the output.
#include <algorithm>

#include "data/loader/augmentation.h"

namespace convoy::data {
namespace {

struct PlacedAxis {
  kernels::AxisMap map;
  // The pixel from which `map` counts source pixels: its index in the image as the decoder has
  // reduced it.
  std::int32_t region = 0;
};

// Returns the placement along an axis on which pixels are copied without scaling. Outputs outside
// the image are padding.
PlacedAxis copied_axis(std::int32_t start, std::int32_t extent, std::int32_t outputs) {
  PlacedAxis axis;
  axis.map.begin = std::clamp(-start, 0, outputs);
  axis.map.end = std::clamp(extent - start, axis.map.begin, outputs);
  axis.region = std::max(start, 0);
  axis.map.extent = axis.map.end - axis.map.begin;
  axis.map.start = -axis.map.begin;
  set_cut(axis.map);
  return axis;
}

// Returns the placement along an axis on which pixels are scaled. The window begins at pixel
// `start` and has `window` pixels, which are scaled to `resized` pixels. The output shows `outputs`
// of the scaled pixels; the first one shown has the number `skipped`.
PlacedAxis scaled_axis(std::int32_t start, std::int32_t window, std::int32_t extent, std::int32_t resized,
                       std::int32_t skipped, std::int32_t outputs, int reduction) {
  PlacedAxis axis;
  const std::int32_t reduced = (extent + reduction - 1) / reduction;
  const std::int32_t end = std::min((start + window + reduction - 1) / reduction, reduced);
  axis.region = start / reduction;
  axis.map.extent = end - axis.region;
  axis.map.start = static_cast<double>(start) / reduction - axis.region;
  axis.map.scale = static_cast<double>(window) / static_cast<double>(resized) / reduction;
  axis.map.skipped = skipped;
  axis.map.end = outputs;
  set_cut(axis.map);
  return axis;
}

PlacedAxis placed_axis(std::int32_t start, std::int32_t window, std::int64_t extent, std::int32_t resized,
                       std::int32_t skipped, std::int64_t outputs, int reduction) {
  const auto image = static_cast<std::int32_t>(extent), count = static_cast<std::int32_t>(outputs);
  if (window == resized && reduction == 1) return copied_axis(start + skipped, image, count);
  return scaled_axis(start, window, image, resized, skipped, count, reduction);
}

}  // namespace

PlacedSample place(const AugmentationParameters& p, ImageShape stored, ImageShape output, int reduction) {
  const PlacedAxis rows = placed_axis(p.window.y, p.window.height, stored.height, p.resized_height, p.top,
                                      output.height, reduction);
  const PlacedAxis columns =
      placed_axis(p.window.x, p.window.width, stored.width, p.resized_width, p.left, output.width, reduction);
  PlacedSample placed;
  placed.cut = {columns.region + columns.map.first, rows.region + rows.map.first, columns.map.size,
                rows.map.size};
  placed.transform.rows = rows.map;
  placed.transform.columns = columns.map;
  placed.transform.pitch = placed.cut.width;
  placed.transform.flip = p.flip;
  std::copy(std::begin(p.erased), std::end(p.erased), placed.transform.erased);
  std::copy(std::begin(p.ops), std::end(p.ops), placed.transform.ops);
  return placed;
}

kernels::SampleTransform place_in_whole(const AugmentationParameters& parameters, ImageShape stored,
                                        ImageShape output, std::int64_t offset) {
  PlacedSample placed = place(parameters, stored, output);
  placed.transform.pitch = static_cast<std::int32_t>(stored.width);
  placed.transform.offset =
      offset + (std::int64_t{placed.cut.y} * stored.width + placed.cut.x) * stored.channels;
  return placed.transform;
}

}  // namespace convoy::data
