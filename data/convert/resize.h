#pragma once

#include "data/image/decode.h"

namespace convoy::data {

// Says how images are resized. At most one member is set; 0 means not set.
struct ResizeRule {
  int size = 0;        // the shorter side becomes `size`, and the centre square is cut out
  int short_side = 0;  // the shorter side becomes `short_side` if it is longer
};

Image resize(Image image, const ResizeRule& rule);

// Returns the shape of the resized image.
ImageShape resized_shape(const ImageShape& shape, const ResizeRule& rule);
// Returns the bytes that resize() takes in addition to those of the image.
std::int64_t resize_bytes(const ImageShape& shape, const ResizeRule& rule);

}  // namespace convoy::data
