// Defines the fuzz target for images. The first 8 bytes of the input choose the region to read, its
// reduction and the channels. The rest is an image file.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "data/image/image_decoder.h"
#include "tests/data/image/jpeg_kinds.h"
#include "tests/data/support.h"
#include "tests/fuzz/targets.h"

namespace convoy::data::fuzz {
namespace {

constexpr std::size_t kRegionBytes = 8;
constexpr std::int64_t kMostPixels = 1 << 16;  // so that no input takes long

bool try_read(ImageDecoder& decoder, std::span<const std::uint8_t> file, PixelRectangle region, int reduction,
              Bytes& pixels) {
  return attempt([&] {
    decoder.open(file);
    decoder.read(region, reduction, pixels.data());
  });
}

Bytes room_for(PixelRectangle region, std::int64_t channels) {
  return Bytes(static_cast<std::size_t>(region.width * channels) * static_cast<std::size_t>(region.height));
}

void require_part(const Bytes& part, PixelRectangle region, const Bytes& whole, PixelRectangle image,
                  std::int64_t channels) {
  const auto row = static_cast<std::size_t>(region.width * channels);
  for (std::int32_t y = 0; y < region.height; ++y) {
    const auto from = static_cast<std::size_t>(((region.y + y) * image.width + region.x) * channels);
    if (std::memcmp(part.data() + static_cast<std::size_t>(y) * row, whole.data() + from, row) == 0) continue;
    std::fprintf(stderr, "region %dx%d at %d, %d of %dx%d: row %d differs from the whole image\n",
                 region.width, region.height, region.x, region.y, image.width, image.height, y);
    std::abort();
  }
}

}  // namespace

std::vector<Bytes> image_seeds() {
  std::vector<Bytes> files;
  std::uint64_t seed = 0;
  for (const testing::JpegKind& kind : testing::jpeg_kinds())
    files.push_back(kind.encode(testing::detailed_image(33, 47, kind.components, ++seed)));
  for (const int channels : {1, 3, 4})
    files.push_back(testing::encode_png(testing::smooth_image(9, 11, channels, 1)));
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Bytes region = testing::random_bytes(kRegionBytes, i);
    files[i].insert(files[i].begin(), region.begin(), region.end());
  }
  return files;
}

// Reads a region and the whole image. If both are readable, the region must have the pixels of its
// part of the whole image.
bool run_image(std::span<const std::uint8_t> input) {
  static ImageDecoder colour(ImageFormat::encoded, {0, 0, 3}), grey(ImageFormat::encoded, {0, 0, 1});
  if (input.size() < kRegionBytes) return false;
  const auto file = input.subspan(kRegionBytes);
  ImageDecoder& decoder = input[0] % 2 == 0 ? colour : grey;
  ImageShape shape;
  if (!attempt([&] { shape = decoder.open(file); }) || shape.height * shape.width > kMostPixels) return false;
  const int reduction = 1 << (input[1] % (decoder.reduction(8) == 8 ? 4 : 1));
  const auto height = static_cast<std::int32_t>((shape.height + reduction - 1) / reduction);
  const auto width = static_cast<std::int32_t>((shape.width + reduction - 1) / reduction);
  PixelRectangle region{input[2] * 257 % width, input[3] * 257 % height, 0, 0};
  region.width = 1 + input[4] * 257 % (width - region.x);
  region.height = 1 + input[5] * 257 % (height - region.y);
  const PixelRectangle image{0, 0, width, height};
  Bytes part = room_for(region, shape.channels), whole = room_for(image, shape.channels);
  if (!try_read(decoder, file, region, reduction, part)) return false;
  if (!try_read(decoder, file, image, reduction, whole)) return false;
  require_part(part, region, whole, image, shape.channels);
  return true;
}

}  // namespace convoy::data::fuzz
