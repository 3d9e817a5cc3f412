#include "data/convert/image_header.h"

#include <algorithm>
#include <array>

namespace convoy::data {
namespace {

std::int64_t big_endian(std::span<const std::uint8_t> bytes) {
  std::int64_t value = 0;
  for (const std::uint8_t byte : bytes) value = value << 8 | byte;
  return value;
}

// Returns the bytes of the DCT coefficients of all components, 2 bytes each. A component may be
// sampled more coarsely than the image.
std::int64_t coefficient_bytes(std::span<const std::uint8_t> components, std::int64_t pixels) {
  int widest = 1, tallest = 1;
  for (std::size_t at = 1; at < components.size(); at += 3) {
    widest = std::max(widest, components[at] >> 4);
    tallest = std::max(tallest, components[at] & 15);
  }
  std::int64_t bytes = 0;
  for (std::size_t at = 1; at < components.size(); at += 3)
    bytes += pixels * (components[at] >> 4) * (components[at] & 15) / (widest * tallest) * 2;
  return bytes;
}

// Reads the segments of a JPEG file, each of which begins with a marker and a length (ITU-T T.81,
// B.2). The SOFn segment holds the size of the image. The SOS segment begins the first scan. If
// this scan lacks some components, more scans follow, and libjpeg keeps all coefficients in memory.
ImageHeader jpeg_header(std::span<const std::uint8_t> file) {
  ImageHeader header{ImageHeader::Format::jpeg};
  bool sequential = false;
  int frame_components = 0;
  for (std::size_t at = 2; at + 4 <= file.size();) {
    const std::uint8_t marker = file[at + 1];
    if (file[at] != 0xFF) return header;
    if (marker == 0xFF || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) {
      at += marker == 0xFF ? 1 : 2;
      continue;
    }
    const auto length = static_cast<std::size_t>(big_endian(file.subspan(at + 2, 2)));
    const bool frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (frame && length >= 8 && at + 2 + length <= file.size()) {
      header.height = big_endian(file.subspan(at + 5, 2));
      header.width = big_endian(file.subspan(at + 7, 2));
      const auto components = file.subspan(at + 10, length - 8);
      header.coefficient_bytes = coefficient_bytes(components, header.width * header.height);
      header.decoder_bytes = header.coefficient_bytes;
      sequential = marker == 0xC0 || marker == 0xC1 || marker == 0xC9;
      frame_components = file[at + 9];
    }
    if (marker == 0xDA && at + 4 < file.size() && sequential && file[at + 4] == frame_components)
      header.decoder_bytes = 0;
    if (marker == 0xDA || length < 2) return header;
    at += 2 + length;
  }
  return header;
}

// libpng refuses images with a larger width or height. The limit also prevents integer overflow.
constexpr std::int64_t kMostPngExtent = 1'000'000;

}  // namespace

ImageHeader read_image_header(std::span<const std::uint8_t> file) {
  constexpr std::array<std::uint8_t, 8> kPng{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  if (file.size() >= 2 && file[0] == 0xFF && file[1] == 0xD8) return jpeg_header(file);
  if (file.size() < 4 || !std::equal(kPng.begin(), kPng.begin() + 4, file.begin())) return {};
  ImageHeader header{ImageHeader::Format::png};
  if (file.size() < 29) return header;
  const std::int64_t width = big_endian(file.subspan(16, 4)), height = big_endian(file.subspan(20, 4));
  if (width > kMostPngExtent || height > kMostPngExtent) return header;
  header.width = width;
  header.height = height;
  const bool interlaced = file[28] != 0;
  // libpng keeps all pixels of an interlaced image until its last pass, in at most 3 channels.
  if (interlaced) header.decoder_bytes = width * height * 3;
  return header;
}

}  // namespace convoy::data
