#pragma once

#include "data/image/decode.h"

namespace convoy::data {

// One of the two at most; 0: not.
struct ResizeRule {
  int size = 0;        // the shorter side becomes `size`, and the centre square is cut out
  int short_side = 0;  // the shorter side becomes `short_side` if it is longer
};

Image resize(Image image, const ResizeRule& rule);

// The memory that resize() takes besides the image's.
std::int64_t resize_bytes(const ImageShape& shape, const ResizeRule& rule);

}  // namespace convoy::data
