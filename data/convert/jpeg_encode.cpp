// libjpeg reports errors through a callback, which jumps back with longjmp. No object with a
// destructor may be created between setjmp and the jump.
#include "data/convert/jpeg_encode.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
// jpeglib.h needs FILE and size_t declared before it.
#include <fmt/format.h>
#include <jpeglib.h>

#include <stdexcept>

namespace convoy::data {
namespace {

struct Encoder {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf escape{};
  char message[JMSG_LENGTH_MAX] = {};
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  ~Encoder() {
    jpeg_destroy_compress(&jpeg);
    std::free(memory);
  }
};

[[noreturn]] void give_up(j_common_ptr jpeg) {
  auto* encoder = static_cast<Encoder*>(jpeg->client_data);
  jpeg->err->format_message(jpeg, encoder->message);
  std::longjmp(encoder->escape, 1);
}

void start(Encoder& encoder) {
  auto& jpeg = encoder.jpeg;
  jpeg.err = jpeg_std_error(&encoder.errors);
  encoder.errors.error_exit = give_up;
  jpeg.client_data = &encoder;
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, &encoder.memory, &encoder.size);
}

bool encode(Encoder& encoder, const Image& image, int quality, int restart_interval) {
  if (setjmp(encoder.escape) != 0) return false;
  auto& jpeg = encoder.jpeg;
  start(encoder);
  jpeg.image_width = static_cast<JDIMENSION>(image.shape.width);
  jpeg.image_height = static_cast<JDIMENSION>(image.shape.height);
  jpeg.input_components = static_cast<int>(image.shape.channels);
  jpeg.in_color_space = image.shape.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg.optimize_coding = TRUE;
  jpeg.restart_interval = static_cast<unsigned>(restart_interval);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<std::uint8_t*>(image.pixels.data()) +
                jpeg.next_scanline * image.shape.width * image.shape.channels;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  return true;
}

struct Decoder {
  jpeg_decompress_struct jpeg{};
  ~Decoder() { jpeg_destroy_decompress(&jpeg); }
};

// Copies the coefficients of a JPEG file into a new file. If the decoder or the encoder fails,
// longjmp returns to the setjmp below.
bool transcode(Decoder& decoder, Encoder& encoder, std::span<const std::uint8_t> file) {
  if (setjmp(encoder.escape) != 0) return false;
  start(encoder);
  // Suppress warnings: the caller has already decoded this file with ImageDecoder.
  encoder.errors.emit_message = [](j_common_ptr, int) {};
  decoder.jpeg.err = &encoder.errors;
  decoder.jpeg.client_data = &encoder;
  jpeg_create_decompress(&decoder.jpeg);
  jpeg_mem_src(&decoder.jpeg, file.data(), file.size());
  jpeg_read_header(&decoder.jpeg, TRUE);
  jvirt_barray_ptr* coefficients = jpeg_read_coefficients(&decoder.jpeg);
  jpeg_copy_critical_parameters(&decoder.jpeg, &encoder.jpeg);
  encoder.jpeg.optimize_coding = TRUE;
  encoder.jpeg.restart_interval = kRestartInterval;
  jpeg_write_coefficients(&encoder.jpeg, coefficients);
  jpeg_finish_compress(&encoder.jpeg);
  return true;
}

}  // namespace

std::vector<std::uint8_t> encode_jpeg_file(const Image& image, int quality, int restart_interval) {
  Encoder encoder;
  if (!encode(encoder, image, quality, restart_interval))
    throw std::runtime_error(fmt::format("cannot be written as JPEG: {}", encoder.message));
  return {encoder.memory, encoder.memory + encoder.size};
}

std::vector<std::uint8_t> seekable_jpeg(std::span<const std::uint8_t> file) {
  Encoder encoder;
  Decoder decoder;
  if (!transcode(decoder, encoder, file))
    throw std::runtime_error(fmt::format("cannot be written as JPEG: {}", encoder.message));
  return {encoder.memory, encoder.memory + encoder.size};
}

}  // namespace convoy::data
