#pragma once

#include "data/image/decode.h"

namespace convoy::data {

// How images are resized. At most one of the members is set; 0 means not set.
struct ResizeRule {
  int size = 0;        // torchvision's Resize(size) and CenterCrop(size), with the same pixels
  int short_side = 0;  // scale the shorter side down to `short_side`; never enlarge
};

Image resize(Image image, const ResizeRule& rule);

// Returns the shape of the resized image.
ImageShape resized_shape(const ImageShape& shape, const ResizeRule& rule);
// Returns how much memory resize() takes besides the original image, in bytes.
std::int64_t resize_bytes(const ImageShape& shape, const ResizeRule& rule);

}  // namespace convoy::data
