// libjpeg reports errors by calling back; it is C and cannot be unwound by an exception, so the callback
// jumps out. Nothing with a destructor may live between setjmp and the jump: the functions that call libjpeg
// hold only pointers into a Decoder that their caller owns.
#include <csetjmp>
#include <cstdio>
// jpeglib.h needs FILE and size_t declared before it.
#include <fmt/format.h>
#include <jpeglib.h>

#include <stdexcept>
#include <string>

#include "data/image/decode.h"

namespace convoy::data {
namespace {

struct Decoder {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf escape{};
  char message[JMSG_LENGTH_MAX] = {};
  Image image;
  std::vector<std::uint8_t> cmyk_row;
  ~Decoder() { jpeg_destroy_decompress(&jpeg); }
};

[[noreturn]] void give_up(j_common_ptr jpeg) {
  auto* decoder = static_cast<Decoder*>(jpeg->client_data);
  jpeg->err->format_message(jpeg, decoder->message);
  std::longjmp(decoder->escape, 1);
}

void on_message(j_common_ptr jpeg, int level) {
  if (level < 0) give_up(jpeg);  // a warning: the data are damaged; higher levels are traces
}

// Returns false with the reason in `message`.
bool read_header(Decoder& decoder, std::span<const std::uint8_t> content) {
  if (setjmp(decoder.escape) != 0) return false;
  decoder.jpeg.err = jpeg_std_error(&decoder.errors);
  decoder.errors.error_exit = give_up;
  decoder.errors.emit_message = on_message;
  decoder.jpeg.client_data = &decoder;
  jpeg_create_decompress(&decoder.jpeg);
  jpeg_mem_src(&decoder.jpeg, content.data(), content.size());
  jpeg_read_header(&decoder.jpeg, TRUE);
  return true;
}

// libjpeg does not turn CMYK into RGB. Adobe's files, which are those in circulation, store it inverted.
void cmyk_to_pixels(const Decoder& decoder, std::uint8_t* to) {
  const std::uint8_t* from = decoder.cmyk_row.data();
  const bool inverted = decoder.jpeg.saw_Adobe_marker != 0;
  const auto ink = [&](int value) { return inverted ? value : 255 - value; };
  for (JDIMENSION x = 0; x < decoder.jpeg.output_width; ++x, from += 4) {
    const int black = ink(from[3]);
    const int red = ink(from[0]) * black / 255, green = ink(from[1]) * black / 255;
    const int blue = ink(from[2]) * black / 255;
    if (decoder.image.shape.channels == 1) {
      *to++ = static_cast<std::uint8_t>((299 * red + 587 * green + 114 * blue + 500) / 1000);
    } else {
      *to++ = static_cast<std::uint8_t>(red);
      *to++ = static_cast<std::uint8_t>(green);
      *to++ = static_cast<std::uint8_t>(blue);
    }
  }
}

bool read_pixels(Decoder& decoder) {
  if (setjmp(decoder.escape) != 0) return false;
  jpeg_start_decompress(&decoder.jpeg);
  while (decoder.jpeg.output_scanline < decoder.jpeg.output_height) {
    std::uint8_t* row = decoder.image.pixels.data() + static_cast<std::size_t>(decoder.jpeg.output_scanline) *
                                                          decoder.image.shape.width *
                                                          decoder.image.shape.channels;
    JSAMPROW target = decoder.cmyk_row.empty() ? row : decoder.cmyk_row.data();
    jpeg_read_scanlines(&decoder.jpeg, &target, 1);
    if (!decoder.cmyk_row.empty()) cmyk_to_pixels(decoder, row);
  }
  jpeg_finish_decompress(&decoder.jpeg);
  return true;
}

}  // namespace

Image decode_jpeg(std::span<const std::uint8_t> content, int channels) {
  Decoder decoder;
  if (!read_header(decoder, content)) throw std::runtime_error(fmt::format("bad JPEG: {}", decoder.message));
  auto& jpeg = decoder.jpeg;
  const ImageShape shape{jpeg.image_height, jpeg.image_width, channels};
  if (shape.height * shape.width > kLargestImagePixels) {
    throw std::runtime_error(fmt::format("bad JPEG: {}x{} pixels is too large", shape.width, shape.height));
  }
  const bool cmyk = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  jpeg.out_color_space = cmyk ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  if (cmyk) decoder.cmyk_row.resize(static_cast<std::size_t>(shape.width) * 4);
  decoder.image.shape = shape;
  decoder.image.pixels.resize(static_cast<std::size_t>(shape.bytes()));
  if (!read_pixels(decoder)) throw std::runtime_error(fmt::format("bad JPEG: {}", decoder.message));
  return std::move(decoder.image);
}

}  // namespace convoy::data
