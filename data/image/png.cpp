#include <fmt/format.h>
#include <png.h>

#include <stdexcept>

#include "data/image/decode.h"

namespace convoy::data {
namespace {

struct Reader {
  png_image image{};
  Reader() { image.version = PNG_IMAGE_VERSION; }
  ~Reader() { png_image_free(&image); }
  void check(int status) const {
    const bool failed = status == 0 || PNG_IMAGE_FAILED(image);
    if (failed) throw std::runtime_error(fmt::format("bad PNG: {}", image.message));
  }
};

}  // namespace

Image decode_png(std::span<const std::uint8_t> content, int channels) {
  Reader reader;
  reader.check(png_image_begin_read_from_memory(&reader.image, content.data(), content.size()));
  Image result;
  result.shape = {reader.image.height, reader.image.width, channels};
  if (result.shape.height * result.shape.width > kLargestImagePixels) {
    throw std::runtime_error(
        fmt::format("bad PNG: {}x{} pixels is too large", result.shape.width, result.shape.height));
  }
  // 16 bits a sample are taken for what 8 are, as everywhere else; libpng would take them for linear light.
  reader.image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  reader.image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  result.pixels.resize(static_cast<std::size_t>(result.shape.bytes()));
  const png_color black{0, 0, 0};
  reader.check(png_image_finish_read(&reader.image, &black, result.pixels.data(), 0, nullptr));
  return result;
}

Image decode_image(std::span<const std::uint8_t> content, int channels) {
  if (content.size() >= 2 && content[0] == 0xFF && content[1] == 0xD8) return decode_jpeg(content, channels);
  if (content.size() >= 4 && content[0] == 0x89 && content[1] == 'P' && content[2] == 'N' &&
      content[3] == 'G') {
    return decode_png(content, channels);
  }
  throw std::runtime_error(content.empty() ? "an empty file, expected a JPEG or PNG image"
                                           : "neither a JPEG nor a PNG image");
}

}  // namespace convoy::data
