// Applies image operations on the host.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/device/image_op.h"

namespace convoy::kernels {

// Applies operations to images of one shape. An object keeps scratch memory, so each thread needs
// its own. Allocates nothing after construction.
class ImageOps {
 public:
  // Throws std::invalid_argument unless there are 1 or 3 channels and 1 to kMostImageOpExtent rows
  // and columns.
  ImageOps(std::int64_t height, std::int64_t width, std::int64_t channels);
  // Applies the operations in `ops` to the image, u8 [H, W, C], up to the first one of kind none.
  void apply(std::span<const ImageOp> ops, std::uint8_t* image);

 private:
  void apply(const ImageOp& op, std::uint8_t* image);
  void change_levels(const ImageOp& op, std::uint8_t* image);
  void move(const ImageOp& op, std::uint8_t* image);
  void sharpen(float factor, std::uint8_t* image);

  int height_, width_, channels_;
  std::vector<std::uint8_t> before_;  // the image before an operation that reads neighbours
};

// Throws std::invalid_argument, with a message that starts with `who`, unless ImageOps can change
// images of this shape.
void check_image_op_shape(const char* who, std::int64_t height, std::int64_t width, std::int64_t channels);

}  // namespace convoy::kernels
