// Turns one stored image into the pixels that the resampling needs. A JPEG file is decoded only
// within a region, at a reduced size if that is enough.
//
// Pixels are those of Pillow's Image.open(file).convert("RGB"), or convert("L") for one channel:
//   * JPEG: decoded as libjpeg-turbo does by default (accurate integer DCT, fancy upsampling).
//     CMYK and YCCK are taken as inverted inks, which is what Adobe writes.
//   * Grey from colour: (19595 R + 38470 G + 7471 B + 32768) / 65536, of JPEG and of PNG alike.
//   * PNG: alpha channels and tRNS chunks are dropped, so a transparent pixel has the colour that
//     is stored for it. gAMA, iCCP and other ancillary chunks change nothing. The high byte of 16
//     bits a sample counts, in grey images too, where Pillow's convert() cuts all values above 255
//     off.
// A file is refused if data that a region needs are incomplete or corrupt, but not for oddities
// that leave the pixels as they are (bytes between JPEG segments, unknown JFIF revisions). An image
// that is read to its last row must have its end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "data/image/window.h"
#include "data/image_set.h"

namespace convoy::data {

class Codec;

// Keeps its memory from image to image: one a thread. Errors are std::runtime_error with one line
// that does not name the image ("bad JPEG: Premature end of JPEG file").
class ImageDecoder {
 public:
  // `shape` is that of images that are stored as pixels. For encoded images only its channels
  // count: 1 or 3.
  ImageDecoder(ImageFormat format, ImageShape shape);
  ~ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;

  // Reads the header. The bytes must stay where they are until the last read().
  ImageShape open(std::span<const std::uint8_t> stored);
  // The largest of 1, 2, 4 and 8 by which decoding can reduce the opened image while `scale`
  // (source pixels an output pixel, the smaller of both axes) stays >= 1. It is 1 for pixels and
  // PNG.
  int reduction(double scale) const;
  // Writes the pixels of `region` to `to`, uint8 [region.height, region.width, C]. The region is
  // one of the reduced image, whose extents are ceil(extent / reduction).
  void read(Window region, int reduction, std::uint8_t* to);

 private:
  ImageFormat format_;
  ImageShape shape_;                      // of the opened image
  std::span<const std::uint8_t> pixels_;  // of an image stored as pixels
  std::unique_ptr<Codec> jpeg_, png_;
  Codec* codec_ = nullptr;  // the one that has opened an image
};

}  // namespace convoy::data
