#include "data/image/decode.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <stdexcept>

#include "tests/data/support.h"

namespace convoy::data {
namespace {

using namespace testing;

int largest_difference(const Image& a, const Image& b) {
  EXPECT_EQ(a.shape, b.shape);
  int largest = 0;
  for (std::size_t i = 0; i < std::min(a.pixels.size(), b.pixels.size()); ++i) {
    largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  }
  return largest;
}

TEST(Decode, PngIsExact) {
  for (const int channels : {1, 3}) {
    const Image image{{9, 13, channels}, random_bytes(static_cast<std::size_t>(9 * 13 * channels), 3)};
    EXPECT_EQ(decode_image(encode_png(image), channels).pixels, image.pixels);
  }
}

// 16-bit values must only lose their lower 8 bits. libpng's simplified reader would take them for
// linear light and brighten them.
TEST(Decode, SixteenBitsAreTheEightWithMoreDigits) {
  // A PNG file with eight 16-bit grey pixels: values v * 257 for the v below, and no gamma chunk.
  const Bytes content{
      0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44, 0x52, 0x00,
      0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x01, 0x10, 0x00, 0x00, 0x00, 0x00, 0x96, 0xFB, 0x6C, 0xDC, 0x00,
      0x00, 0x00, 0x1C, 0x49, 0x44, 0x41, 0x54, 0x78, 0x01, 0x01, 0x11, 0x00, 0xEE, 0xFF, 0x00, 0x00, 0x00,
      0x01, 0x01, 0x10, 0x10, 0x40, 0x40, 0x64, 0x64, 0x80, 0x80, 0xC8, 0xC8, 0xFF, 0xFF, 0x1A, 0x2D, 0x05,
      0xF9, 0xDA, 0x8E, 0xDF, 0x32, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};
  EXPECT_EQ(decode_image(content, 1).pixels, (Bytes{0, 1, 16, 64, 100, 128, 200, 255}));
}

TEST(Decode, JpegIsClose) {
  const Image image = smooth_image(24, 17, 3, 1);
  EXPECT_LE(largest_difference(decode_image(encode_jpeg(image, JCS_UNKNOWN, 100), 3), image), 6);
}

TEST(Decode, GreyBecomesThreeEqualChannels) {
  const Image grey = smooth_image(8, 8, 1, 2);
  for (const Bytes& content : {encode_jpeg(grey, JCS_UNKNOWN, 100), encode_png(grey)}) {
    const Image image = decode_image(content, 3);
    ASSERT_EQ(image.shape, (ImageShape{8, 8, 3}));
    for (std::size_t i = 0; i < grey.pixels.size(); ++i) {
      EXPECT_NEAR(image.pixels[3 * i], grey.pixels[i], 2);
      EXPECT_EQ(image.pixels[3 * i], image.pixels[3 * i + 1]);
      EXPECT_EQ(image.pixels[3 * i], image.pixels[3 * i + 2]);
    }
    EXPECT_LE(largest_difference(decode_image(content, 1), grey), 2);
  }
}

TEST(Decode, CmykJpegBecomesRgb) {
  // Adobe stores inks inverted, so 255 means no ink.
  Image cmyk{{16, 16, 4}, {}};
  for (int i = 0; i < 16 * 16; ++i) cmyk.pixels.insert(cmyk.pixels.end(), {255, 100, 50, 255});
  const Image image = decode_image(encode_jpeg(cmyk, JCS_CMYK), 3);
  EXPECT_NEAR(image.pixels[0], 255, 4);
  EXPECT_NEAR(image.pixels[1], 100, 4);
  EXPECT_NEAR(image.pixels[2], 50, 4);
}

TEST(Decode, AlphaIsDropped) {
  const Image image{{1, 2, 4}, {200, 100, 50, 255, 200, 100, 50, 0}};
  EXPECT_EQ(decode_image(encode_png(image), 3).pixels, (Bytes{200, 100, 50, 200, 100, 50}));
}

TEST(Decode, SaysWhatIsNoImage) {
  expect_error([] { decode_image({}, 3); }, {"empty file"});
  expect_error([] { decode_image(Bytes{'G', 'I', 'F', '8', '9'}, 3); }, {"neither a JPEG nor a PNG"});
}

// Every file that is cut short must be refused. libjpeg fills missing data with grey and only
// warns, but half a picture must not become training data.
TEST(Decode, EveryTruncationIsFound) {
  const Image image{{40, 40, 3}, random_bytes(40 * 40 * 3, 1)};
  for (const Bytes& whole : {encode_jpeg(image), encode_png(image)}) {
    EXPECT_NO_THROW(decode_image(whole, 3));
    // A JPEG file without its end marker (the last two bytes) has all its pixels, but must be
    // refused. The last twelve bytes of a PNG file are an empty chunk, which libpng does not read.
    const std::size_t last = whole[0] == 0xFF ? whole.size() : whole.size() - 12;
    for (std::size_t length = 0; length < last; length += 1 + length / 60) {
      EXPECT_THROW(decode_image(std::span(whole).first(length), 3), std::runtime_error) << length;
    }
    EXPECT_THROW(decode_image(std::span(whole).first(last - 1), 3), std::runtime_error);
  }
}

// Damaged files must not crash the process. They may be decoded, because JPEG has no checksum.
TEST(Decode, SurvivesFlippedBytes) {
  const Image image = smooth_image(32, 32, 3, 4);
  std::mt19937 random(5);
  for (const Bytes& whole : {encode_jpeg(image), encode_png(image)}) {
    int refused = 0;
    for (int trial = 0; trial < 500; ++trial) {
      Bytes damaged = whole;
      for (int flips = 0; flips < 4; ++flips) {
        // Damages the headers more often, because that has more effect.
        damaged[random() % (flips < 2 ? std::min<std::size_t>(200, damaged.size()) : damaged.size())] =
            static_cast<std::uint8_t>(random());
      }
      try {
        decode_image(damaged, 3);
      } catch (const std::runtime_error&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 100);
  }
}

TEST(Decode, AHeaderCannotAskForAnyAmountOfMemory) {
  Bytes content = encode_jpeg(smooth_image(8, 8, 3, 1));
  for (std::size_t i = 0; i + 8 < content.size(); ++i) {
    // This marker begins the frame header, which holds height and width.
    if (content[i] == 0xFF && content[i + 1] == 0xC0) {
      for (const std::size_t at : {i + 5, i + 6, i + 7, i + 8}) content[at] = 0xFE;
      break;
    }
  }
  expect_error([&] { decode_image(content, 3); }, {"65278x65278", "too large"});
}

}  // namespace
}  // namespace convoy::data
