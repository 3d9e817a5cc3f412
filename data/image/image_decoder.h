// Turns one stored image into the pixels that resampling needs. Of a JPEG file, only a region is
// decoded, and at a reduced size if that is enough.
//
// Pixels are those of Pillow's Image.open(file).convert("RGB"), or convert("L") for one channel:
//   * JPEG: decoded as libjpeg-turbo does by default (accurate integer DCT, fancy upsampling).
//     CMYK and YCCK are taken as inverted inks, which is what Adobe writes.
//   * Grey from colour: (19595 R + 38470 G + 7471 B + 32768) / 65536, for JPEG and for PNG.
//   * PNG: alpha channels and tRNS chunks are dropped, so a transparent pixel has the colour that
//     is stored for it. gAMA, iCCP and other ancillary chunks change nothing. 16-bit values are
//     reduced to their high byte, also in grey images, where Pillow's convert() clips all values
//     above 255.
// A file is refused if data that a region needs are incomplete or corrupt, but not for oddities
// that leave the pixels as they are (bytes between JPEG segments, unknown JFIF revisions). If an
// image is read to its last row, the file must be complete to its end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "data/image/window.h"
#include "data/image_set.h"

namespace convoy::data {

class Codec;

// Decodes one image after the other and keeps its memory between them. Use one decoder per thread.
// Errors are std::runtime_error with one line that does not name the image ("bad JPEG: Premature
// end of JPEG file").
class ImageDecoder {
 public:
  // `shape` is the shape of images that are stored as pixels. For encoded images only its number of
  // channels is used, 1 or 3.
  ImageDecoder(ImageFormat format, ImageShape shape);
  ~ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;

  // Reads the header. The bytes must stay where they are until the last read().
  ImageShape open(std::span<const std::uint8_t> stored);
  // Returns the largest of 1, 2, 4 and 8 by which decoding can reduce the opened image without
  // making it smaller than the output; 1 for pixels and PNG. `scale` is the number of source pixels
  // per output pixel, on the axis where it is smaller.
  int reduction(double scale) const;
  // Writes the pixels of `region` to `to`, uint8 [region.height, region.width, C]. The region lies
  // in the reduced image, whose extents are ceil(extent / reduction).
  void read(Window region, int reduction, std::uint8_t* to);

 private:
  ImageFormat format_;
  ImageShape shape_;                      // shape of the opened image
  std::span<const std::uint8_t> pixels_;  // the opened image if it is stored as pixels
  std::unique_ptr<Codec> jpeg_, png_;
  Codec* codec_ = nullptr;  // codec of the opened image; null for pixels
};

}  // namespace convoy::data
