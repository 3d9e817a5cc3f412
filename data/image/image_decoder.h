// Decodes a rectangle of a JPEG or PNG file, or of an image stored as pixels. A JPEG file is
// decoded only where needed, and at a reduced size if the caller allows it.
//
// Pixels are those of Pillow's Image.open(file).convert("RGB"), or convert("L") for one channel:
//   * JPEG: decoded as libjpeg-turbo does by default (accurate integer DCT, fancy upsampling).
//     CMYK and YCCK are taken as inverted inks, which is what Adobe writes.
//   * Grey from colour: (19595 R + 38470 G + 7471 B + 32768) / 65536, for JPEG and for PNG.
//   * PNG: alpha channels and tRNS chunks are dropped, so a transparent pixel has the colour that
//     is stored for it. gAMA, iCCP and other ancillary chunks change nothing. 16-bit values are
//     reduced to their high byte, also in grey images, where Pillow's convert() clips all values
//     above 255.
// A file is refused if data needed for the pixels are incomplete or corrupt. Oddities that do not
// change the pixels are accepted (bytes between JPEG segments, unknown JFIF revisions). If the last
// row of an image is read, its file must be complete to the end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "data/image/pixel_rectangle.h"
#include "data/image_set.h"

namespace convoy::data {

class Codec;

// Decodes one image after the other and reuses its memory. Use one decoder per thread. An error is
// a std::runtime_error with one line of text that does not name the image ("bad JPEG: Premature end
// of JPEG file").
class ImageDecoder {
 public:
  // `shape` is the shape of images that are stored as pixels. For JPEG and PNG files only its
  // number of channels counts, 1 or 3.
  ImageDecoder(ImageFormat format, ImageShape shape);
  ~ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;

  // Reads the header of an image. `stored` must stay valid until the last read() of this image.
  ImageShape open(std::span<const std::uint8_t> stored);
  // Returns the largest of 1, 2, 4 and 8 by which the opened JPEG image can be reduced while it is
  // decoded without becoming smaller than the output; 1 for other images. `scale` is the number of
  // source pixels per output pixel, the smaller value of the two axes.
  int reduction(double scale) const;
  // Writes the pixels of `region` to `to`, uint8 [region.height, region.width, C]. The region lies
  // in the reduced image, whose extents are ceil(extent / reduction).
  void read(PixelRectangle region, int reduction, std::uint8_t* to);

 private:
  ImageFormat format_;
  ImageShape shape_;                      // shape of the opened image
  std::span<const std::uint8_t> pixels_;  // the opened image if it is stored as pixels
  std::unique_ptr<Codec> jpeg_, png_;
  Codec* codec_ = nullptr;  // codec of the opened image; null for pixels
};

}  // namespace convoy::data
