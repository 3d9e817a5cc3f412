#include "data/image/image_decoder.h"

#include <algorithm>
#include <array>
#include <random>
#include <stdexcept>

#include "tests/data/image/jpeg_kinds.h"
#include "tests/data/support.h"

namespace convoy::data {
namespace {

using namespace testing;

Bytes cut_of(const Bytes& whole, std::int64_t width, std::int64_t channels, PixelRectangle region) {
  Bytes cut;
  for (std::int64_t y = region.y; y < region.y + region.height; ++y) {
    const auto row = whole.begin() + (y * width + region.x) * channels;
    cut.insert(cut.end(), row, row + region.width * channels);
  }
  return cut;
}

PixelRectangle random_region(std::mt19937& random, std::int32_t height, std::int32_t width) {
  const auto below = [&](std::int32_t limit) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(limit));
  };
  PixelRectangle region;
  region.height = 1 + below(height);
  region.width =
      // Draw narrow regions often, because the decoder treats them as a special case.
      1 + below(random() % 3 == 0 ? std::min(width, 4) : width);
  region.y = below(height - region.height + 1);
  region.x = below(width - region.width + 1);
  return region;
}

// Decodes random regions. They must have the pixels of the same part of the image decoded as a
// whole at the same reduction.
void expect_parts_of_the_whole(const Bytes& file, int channels, const std::vector<int>& reductions,
                               int trials, std::mt19937& random, const std::string& name) {
  ImageDecoder whole_decoder(ImageFormat::encoded, {0, 0, channels});
  ImageDecoder decoder(ImageFormat::encoded, {0, 0, channels});
  const ImageShape shape = whole_decoder.open(file);
  for (const int reduction : reductions) {
    const auto height = static_cast<std::int32_t>((shape.height + reduction - 1) / reduction);
    const auto width = static_cast<std::int32_t>((shape.width + reduction - 1) / reduction);
    Bytes whole(static_cast<std::size_t>(height) * static_cast<std::size_t>(width * channels));
    whole_decoder.read({0, 0, width, height}, reduction, whole.data());
    for (int trial = 0; trial < trials; ++trial) {
      const PixelRectangle region = random_region(random, height, width);
      const auto bytes = static_cast<std::size_t>(region.width * region.height * channels);
      Bytes cut(bytes + 16, 0xA5);
      ASSERT_EQ(decoder.open(file), shape) << name;
      decoder.read(region, reduction, cut.data());
      ASSERT_TRUE(std::all_of(cut.begin() + static_cast<std::ptrdiff_t>(bytes), cut.end(),
                              [](std::uint8_t byte) { return byte == 0xA5; }))
          << name << " wrote beyond its region";
      cut.resize(bytes);
      ASSERT_TRUE(cut == cut_of(whole, width, channels, region))
          << name << " of " << shape.to_string() << " reduced by " << reduction << ": " << region.width << "x"
          << region.height << " at " << region.x << ", " << region.y;
    }
  }
}

TEST(ImageDecoder, JpegRegionsAreBitForBitPartsOfTheWhole) {
  std::mt19937 random(1);
  for (const JpegKind& kind : jpeg_kinds()) {
    for (int trial = 0; trial < 6; ++trial) {
      const auto height = static_cast<std::int64_t>(trial == 0 ? 1 : 1 + random() % 150);
      const auto width = static_cast<std::int64_t>(trial == 1 ? 1 : 1 + random() % 150);
      const Bytes file = kind.encode(detailed_image(height, width, kind.components, random()));
      for (const int channels : {1, 3})
        expect_parts_of_the_whole(file, channels, {1, 2, 4, 8}, 6, random, kind.name);
    }
  }
}

TEST(ImageDecoder, PngAndStoredPixelsGiveRegions) {
  std::mt19937 random(2);
  for (const int channels : {1, 3}) {
    const Image image = detailed_image(37, 53, channels, 5);
    expect_parts_of_the_whole(encode_png(image), channels, {1}, 20, random, "PNG");
    ImageDecoder decoder(ImageFormat::pixels, image.shape);
    for (int trial = 0; trial < 20; ++trial) {
      const PixelRectangle region = random_region(random, 37, 53);
      Bytes cut(static_cast<std::size_t>(region.width * region.height * channels));
      EXPECT_EQ(decoder.open(image.pixels), image.shape);
      decoder.read(region, 1, cut.data());
      EXPECT_EQ(cut, cut_of(image.pixels, 53, channels, region));
    }
  }
}

TEST(ImageDecoder, ReducesJpegAlone) {
  const Image image = smooth_image(16, 16, 3, 1);
  ImageDecoder decoder(ImageFormat::encoded, {0, 0, 3});
  const Bytes jpeg = encode_jpeg(image), png = encode_png(image);
  decoder.open(jpeg);
  const std::vector<std::pair<double, int>> expected{{0.3, 1}, {1, 1},   {1.99, 1}, {2, 2},  {3.9, 2},
                                                     {4, 4},   {7.9, 4}, {8, 8},    {100, 8}};
  for (const auto& [scale, reduction] : expected) EXPECT_EQ(decoder.reduction(scale), reduction) << scale;
  decoder.open(png);
  EXPECT_EQ(decoder.reduction(8), 1);
  ImageDecoder pixels(ImageFormat::pixels, image.shape);
  pixels.open(image.pixels);
  EXPECT_EQ(pixels.reduction(8), 1);
}

TEST(ImageDecoder, IsUsableAfterABadImageAndReadsOneTwice) {
  const Image image = detailed_image(40, 30, 3, 1);
  const Bytes good = encode_jpeg(image), png = encode_png(image);
  const Bytes bad(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(good.size() / 2));
  const Bytes bad_png(png.begin(), png.begin() + static_cast<std::ptrdiff_t>(png.size() / 2));
  const Bytes expected = decode_image(good, 3).pixels;
  ImageDecoder decoder(ImageFormat::encoded, {0, 0, 3});
  Bytes pixels(40 * 30 * 3);
  for (int round = 0; round < 3; ++round) {
    decoder.open(bad);
    EXPECT_THROW(decoder.read({0, 0, 30, 40}, 1, pixels.data()), std::runtime_error);
    decoder.open(bad_png);
    EXPECT_THROW(decoder.read({0, 0, 30, 40}, 1, pixels.data()), std::runtime_error);
    EXPECT_THROW(decoder.open(Bytes{1, 2, 3}), std::runtime_error);
    EXPECT_THROW(decoder.read({0, 0, 30, 40}, 1, pixels.data()), std::invalid_argument);
    decoder.open(good);
    for (int again = 0; again < 2; ++again) {
      decoder.read({0, 0, 30, 40}, 1, pixels.data());
      EXPECT_EQ(pixels, expected);
    }
    decoder.open(png);
    for (int again = 0; again < 2; ++again) {
      decoder.read({0, 0, 30, 40}, 1, pixels.data());
      EXPECT_EQ(pixels, image.pixels);
    }
  }
}

TEST(ImageDecoder, RefusesRegionsThatTheImageDoesNotHave) {
  ImageDecoder decoder(ImageFormat::encoded, {0, 0, 3});
  const Bytes file = encode_jpeg(smooth_image(9, 17, 3, 1));
  Bytes pixels(17 * 9 * 3);
  decoder.open(file);
  for (const PixelRectangle& region :
       {PixelRectangle{0, 0, 18, 9}, PixelRectangle{0, 0, 17, 10}, PixelRectangle{-1, 0, 3, 3},
        PixelRectangle{0, -1, 3, 3}, PixelRectangle{0, 0, 0, 1}, PixelRectangle{15, 0, 3, 1}}) {
    EXPECT_THROW(decoder.read(region, 1, pixels.data()), std::invalid_argument);
  }
  EXPECT_THROW(decoder.read({0, 0, 10, 5}, 2, pixels.data()), std::invalid_argument);
  EXPECT_THROW(decoder.read({0, 0, 2, 2}, 3, pixels.data()), std::invalid_argument);
  EXPECT_NO_THROW(decoder.read({0, 0, 9, 5}, 2, pixels.data()));
  EXPECT_THROW(ImageDecoder(ImageFormat::encoded, {0, 0, 2}), std::invalid_argument);
}

// ---- damaged and unusual files, of which libjpeg only warns ----

Bytes with_inserted(const Bytes& file, std::size_t at, const Bytes& more) {
  Bytes result = file;
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
  return result;
}

std::size_t find_marker(const Bytes& file, std::uint8_t marker) {
  for (std::size_t i = 0; i + 1 < file.size(); ++i)
    if (file[i] == 0xFF && file[i + 1] == marker) return i;
  ADD_FAILURE() << "no such marker";
  return 0;
}

TEST(ImageDecoder, OdditiesThatLeaveThePixelsAloneRefuseNothing) {
  const Bytes file = encode_jpeg(detailed_image(33, 35, 3, 4));
  const Bytes expected = decode_image(file, 3).pixels;
  const Bytes junk{0x00, 0x12, 0x34};
  // Inserts junk before the markers of the tables, of the scan and of the end.
  for (const std::uint8_t marker : {0xDB, 0xDA, 0xD9})
    EXPECT_EQ(decode_image(with_inserted(file, find_marker(file, marker), junk), 3).pixels, expected)
        << +marker;
  Bytes jfif = file;
  jfif[find_marker(file, 0xE0) + 9] = 9;  // sets the major revision of JFIF
  EXPECT_EQ(decode_image(jfif, 3).pixels, expected);
  Bytes sequential = file;  // its scan claims to end with coefficient 0, not 63
  const std::size_t last = find_marker(file, 0xDA) + 12;
  ASSERT_EQ(sequential[last], 63);
  sequential[last] = 0;
  EXPECT_EQ(decode_image(sequential, 3).pixels, expected);
  Bytes behind = file;
  behind.insert(behind.end(), {1, 2, 3, 4});
  EXPECT_EQ(decode_image(behind, 3).pixels, expected);
}

// A file without quantisation tables must be refused. libjpeg would use those of the previous
// image.
TEST(ImageDecoder, TakesNoTablesFromTheImageBefore) {
  const Image image = detailed_image(24, 24, 3, 1);
  const Bytes first = encode_jpeg(image, JCS_UNKNOWN, 20), second = encode_jpeg(image, JCS_UNKNOWN, 95);
  static constexpr std::array<std::uint8_t, 2> kTables{0xFF, 0xDB};
  Bytes without = second;
  for (;;) {  // cut out the quantisation tables
    const auto at = std::search(without.begin(), without.end(), kTables.begin(), kTables.end());
    if (at == without.end()) break;
    without.erase(at, at + 2 + at[2] * 256 + at[3]);
  }
  ImageDecoder decoder(ImageFormat::encoded, {0, 0, 3});
  Bytes pixels(24 * 24 * 3);
  decoder.open(first);
  decoder.read({0, 0, 24, 24}, 1, pixels.data());
  decoder.open(without);
  EXPECT_THROW(decoder.read({0, 0, 24, 24}, 1, pixels.data()), std::runtime_error);
}

// A file with the same coefficients in arithmetic coding, which libjpeg-turbo decodes, must give
// the same pixels. Black and white pixels make large coefficients that are frequent and so have
// short Huffman codes.
TEST(ImageDecoder, HuffmanCodesGiveThePixelsOfArithmeticCoding) {
  Image harsh = detailed_image(70, 90, 3, 1);
  for (std::size_t i = 0; i < harsh.pixels.size(); ++i)
    harsh.pixels[i] = random_bytes(1, i / 3)[0] % 2 == 0 ? 0 : 255;
  for (const Image& image : {harsh, detailed_image(70, 90, 3, 1)}) {
    for (const int quality : {3, 50, 100}) {
      for (const int restart : {0, 3}) {
        for (const int h : {1, 2}) {
          JpegKind kind{.name = "", .h = h, .v = h, .restart = restart, .quality = quality};
          kind.arithmetic = true;
          const Bytes expected = decode_image(kind.encode(image), 3).pixels;
          kind.arithmetic = false;
          for (const bool optimised : {false, true}) {
            kind.optimised = optimised;
            EXPECT_TRUE(decode_image(kind.encode(image), 3).pixels == expected)
                << quality << " " << restart << " " << h << " " << optimised;
          }
        }
      }
    }
  }
}

// A file that is cut short must still give the regions whose data is there.
TEST(ImageDecoder, MissingRowsAreFoundWhereTheyAreNeeded) {
  for (const JpegKind& kind : jpeg_kinds()) {
    if (kind.components == 1) continue;
    const Bytes file = kind.encode(detailed_image(128, 64, kind.components, 4));
    const Bytes half(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(file.size() / 2));
    ImageDecoder decoder(ImageFormat::encoded, {0, 0, 3});
    Bytes pixels(128 * 64 * 3);
    const auto read = [&](PixelRectangle region) {
      decoder.open(half);
      decoder.read(region, 1, pixels.data());
    };
    EXPECT_THROW(read({0, 0, 64, 128}), std::runtime_error) << kind.name;
    EXPECT_THROW(read({10, 90, 8, 8}), std::runtime_error) << kind.name;
    if (kind.multiple_scans()) continue;
    EXPECT_NO_THROW(read({10, 10, 8, 8})) << kind.name;
  }
}

std::vector<std::size_t> restart_markers(const Bytes& file) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i + 1 < file.size(); ++i)
    if (file[i] == 0xFF && file[i + 1] >= 0xD0 && file[i + 1] <= 0xD7) found.push_back(i);
  return found;
}

// The image has 8 rows of two segments with 32x16 pixels each, between restart markers. The segment
// of rows 48 to 63 and columns 32 to 63 is damaged.
TEST(ImageDecoder, DamageIsFoundInTheSegmentsThatARegionNeeds) {
  const JpegKind kind{.name = "", .h = 2, .v = 2, .restart = 2};
  const Image image = detailed_image(128, 64, 3, 7);
  const Bytes good = kind.encode(image);
  Bytes bad = good;
  const auto markers = restart_markers(good);
  ASSERT_EQ(markers.size(), 15u);
  bad.erase(bad.begin() + static_cast<std::ptrdiff_t>(markers[6] + 2),
            bad.begin() + static_cast<std::ptrdiff_t>(markers[7]));
  ImageDecoder decoder(ImageFormat::encoded, {0, 0, 3});
  const auto read = [&](const Bytes& file, PixelRectangle region) {
    Bytes pixels(static_cast<std::size_t>(region.width * region.height * 3));
    decoder.open(file);
    decoder.read(region, 1, pixels.data());
    return pixels;
  };
  EXPECT_THROW(read(bad, {0, 0, 64, 128}), std::runtime_error);
  EXPECT_THROW(read(bad, {40, 50, 4, 4}), std::runtime_error);
  EXPECT_THROW(read(bad, {0, 40, 64, 10}), std::runtime_error);
  const PixelRectangle above{0, 0, 64, 40};
  EXPECT_EQ(read(bad, above), read(good, above));
#if __has_include(<jpegint.h>)
  for (const PixelRectangle& region : {PixelRectangle{0, 80, 64, 40}, PixelRectangle{0, 40, 20, 40}})
    EXPECT_EQ(read(bad, region), read(good, region));
#endif
}

// Restart markers must count from 0 to 7. If they do not, our Huffman decoder leaves the file to
// libjpeg-turbo, which refuses it.
TEST(ImageDecoder, RestartMarkersInAnotherOrderAreRefused) {
  const JpegKind kind{.name = "", .h = 2, .v = 2, .restart = 2};
  Bytes file = kind.encode(detailed_image(128, 64, 3, 7));
  file[restart_markers(file)[3] + 1] ^= 1;
  Bytes pixels(128 * 64 * 3);
  ImageDecoder decoder(ImageFormat::encoded, {0, 0, 3});
  decoder.open(file);
  EXPECT_THROW(decoder.read({0, 0, 64, 128}, 1, pixels.data()), std::runtime_error);
}

// A small file with very many scans would take much time, so it must be refused.
TEST(ImageDecoder, TooManyScansAreRefused) {
  const auto kinds = jpeg_kinds();
  const auto kind =
      std::find_if(kinds.begin(), kinds.end(), [](const JpegKind& each) { return each.separate_scans; });
  const Bytes file = kind->encode(smooth_image(16, 16, 3, 1));
  const auto end = file.end() - 2;
  static constexpr std::array<std::uint8_t, 2> kScan{0xFF, 0xDA};
  const auto scan = std::find_end(file.begin(), end, kScan.begin(), kScan.end());
  const auto repeated = [&](int times) {
    Bytes result(file.begin(), end);
    for (int i = 0; i < times; ++i) result.insert(result.end(), scan, end);
    result.insert(result.end(), end, file.end());
    return result;
  };
  EXPECT_NO_THROW(decode_image(repeated(100), 3));
  expect_error([&] { decode_image(repeated(300), 3); }, {"bad JPEG: more than 200 scans"});
}

}  // namespace
}  // namespace convoy::data
