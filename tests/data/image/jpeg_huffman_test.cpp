#include "data/image/jpeg_huffman.h"

#include <algorithm>
#include <random>
#include <stdexcept>

#include "data/image/image_decoder.h"
#include "tests/data/image/jpeg_kinds.h"
#include "tests/data/support.h"

namespace convoy::data {
namespace {

using namespace testing;

constexpr int kRows = 32, kColumns = 24;  // blocks
constexpr std::int32_t kHeight = 8 * kRows, kWidth = 8 * kColumns;

using Block = std::array<JCOEF, DCTSIZE2>;

// Sets the coefficients of a block in zigzag order. `number` counts the blocks.
using FillBlock = std::function<void(int number, Block& zigzag)>;

// Returns the blocks of component `c`, with their coefficients in the order of libjpeg.
std::vector<Block> blocks_of(int c, const FillBlock& fill) {
  std::vector<Block> blocks(kRows * kColumns);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Block zigzag{};
    fill(static_cast<int>(i * 3) + c, zigzag);
    std::size_t k = 0;
    for (int diagonal = 0; diagonal < 2 * DCTSIZE - 1; ++diagonal) {
      for (int j = 0; j <= diagonal; ++j) {
        const int row = diagonal % 2 == 0 ? diagonal - j : j, column = diagonal - row;
        if (row < DCTSIZE && column < DCTSIZE)
          blocks[i][static_cast<std::size_t>(row * DCTSIZE + column)] = zigzag[k++];
      }
    }
  }
  return blocks;
}

// Makes a colour file without subsampling, which has the given coefficients.
Bytes file_of(const FillBlock& fill, bool optimised, int restart) {
  std::array<jvirt_barray_ptr, 3> arrays{};  // libjpeg reads them when the file is finished
  return jpeg_file([&](jpeg_compress_struct& jpeg) {
    jpeg.image_width = kWidth, jpeg.image_height = kHeight;
    jpeg.input_components = 3, jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = 1;
    jpeg.optimize_coding = optimised ? TRUE : FALSE;
    jpeg.restart_interval = static_cast<unsigned>(restart);
    auto* common = reinterpret_cast<j_common_ptr>(&jpeg);
    for (auto& array : arrays)
      array = jpeg.mem->request_virt_barray(common, JPOOL_IMAGE, TRUE, kColumns, kRows, kRows);
    jpeg_write_coefficients(&jpeg, arrays.data());
    for (int c = 0; c < 3; ++c) {
      const std::vector<Block> blocks = blocks_of(c, fill);
      JBLOCKARRAY rows =
          jpeg.mem->access_virt_barray(common, arrays[static_cast<std::size_t>(c)], 0, kRows, TRUE);
      for (std::size_t i = 0; i < blocks.size(); ++i)
        std::copy(blocks[i].begin(), blocks[i].end(), rows[i / kColumns][i % kColumns]);
    }
  });
}

// Decodes the blocks of the MCUs from `first` on, in columns of MCUs. All other blocks stay 0.
// Returns no blocks if the decoder gives up.
std::array<std::vector<Block>, 3> decode(JpegHuffman& huffman, const Bytes& file, int first_row,
                                         int first_column, int last_column) {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, file.data(), file.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg_start_decompress(&jpeg);
  std::array<std::vector<Block>, 3> result;
  for (auto& blocks : result) blocks.resize(kRows * kColumns);
  bool good = huffman.start(jpeg, {jpeg.src->next_input_byte, jpeg.src->bytes_in_buffer});
  huffman.set_columns(first_column, last_column);
  for (std::size_t i = 0; good && i < kRows * kColumns; ++i) {
    std::array<JBLOCKROW, 3> blocks;
    for (std::size_t c = 0; c < 3; ++c) blocks[c] = reinterpret_cast<JBLOCKROW>(result[c][i].data());
    good = huffman.decode(static_cast<int>(i) < first_row * kColumns ? nullptr : blocks.data());
  }
  jpeg_destroy_decompress(&jpeg);
  if (!good) result = {};
  return result;
}

// Returns coefficients that are 0 with a given probability, with values of at most `size` bits.
// Block n ends after coefficient n % 64, so blocks end at all places.
FillBlock blocks_that_end_at_all_places(double zero, int size) {
  return [=](int number, Block& zigzag) {
    std::mt19937 random(static_cast<unsigned>(number));
    const auto value = [&] {
      const unsigned bits = random() % static_cast<unsigned>(size);
      const int positive = static_cast<int>((1u << bits) | (random() & ((1u << bits) - 1)));
      return static_cast<JCOEF>(random() % 2 == 0 ? positive : -positive);
    };
    zigzag[0] = static_cast<JCOEF>(random() % 3 == 0 ? 0 : value());
    const auto end = static_cast<std::size_t>(number % DCTSIZE2);
    for (std::size_t k = 1; k < end; ++k)
      if (random() >= zero * 4294967296.0) zigzag[k] = value();
    if (end > 0) zigzag[end] = value();
  };
}

// Returns coefficients of the given sizes in turn.
FillBlock sizes_in_turn(std::vector<int> sizes) {
  return [sizes = std::move(sizes)](int number, Block& zigzag) {
    std::mt19937 random(static_cast<unsigned>(number));
    for (std::size_t k = 1; k < zigzag.size(); ++k) {
      const unsigned half = 1u << (sizes[k % sizes.size()] - 1);
      const int positive = static_cast<int>(half + random() % half);
      zigzag[k] = static_cast<JCOEF>(random() % 2 == 0 ? positive : -positive);
    }
  };
}

struct Content {
  const char* name;
  FillBlock fill;
};

const std::vector<Content> kContents{
    {"dense and small", blocks_that_end_at_all_places(0, 2)},
    {"dense, of all sizes", blocks_that_end_at_all_places(0, 10)},
    {"half", blocks_that_end_at_all_places(0.5, 6)},
    {"sparse", blocks_that_end_at_all_places(0.9, 4)},
    {"sparse and large", blocks_that_end_at_all_places(0.95, 10)},
    {"last only", blocks_that_end_at_all_places(1, 8)},
    // Runs of 16 zeros are then the most frequent symbol, so one look-up finds many of them.
    {"coefficient 63 only", [](int number, auto& zigzag) { zigzag[63] = number % 5 == 0 ? -1 : 1; }},
    // Several look-ups in turn would find more than 18 bits each, if they were allowed to.
    {"four small and a large", sizes_in_turn({1, 1, 1, 1, 10})},
    {"medium and large", sizes_in_turn({7, 10})},
    // Values that do not fit into a pair.
    {"eight bits", sizes_in_turn({8})},
    // With the standard tables, two look-ups of 16 bits precede a code and value of 26 bits.
    {"long codes", sizes_in_turn({1, 6, 1, 6, 10})},
    {"nothing", [](int, auto&) {}},
};

// One decoder decodes all files in turn, so it must not use the tables of the file before. It
// decodes each of them as a whole, and skips the blocks above and next to a part.
TEST(JpegHuffman, CoefficientsAreThoseOfTheFile) {
  JpegHuffman huffman;
  for (const bool optimised : {false, true}) {
    for (const int restart : {0, 5}) {
      for (const auto& [name, fill] : kContents) {
        const Bytes file = file_of(fill, optimised, restart);
        for (const auto& [row, first, last] : {std::array{0, 0, kColumns - 1}, std::array{31, 3, 3},
                                               std::array{7, 2, 20}, std::array{0, 23, 23}}) {
          const auto decoded = decode(huffman, file, row, first, last);
          for (int c = 0; c < 3; ++c) {
            std::vector<Block> expected = blocks_of(c, fill);
            for (int i = 0; i < kRows * kColumns; ++i)
              if (i / kColumns < row || i % kColumns < first || i % kColumns > last)
                expected[static_cast<std::size_t>(i)] = {};
            EXPECT_TRUE(decoded[static_cast<std::size_t>(c)] == expected)
                << name << (optimised ? ", own" : ", standard") << " tables, restart " << restart
                << ", component " << c << " from row " << row << ", column " << first;
          }
        }
      }
    }
  }
}

// A table without codes is legal. Damaged data may use it nevertheless.
TEST(JpegHuffman, ATableWithoutCodesIsRefused) {
  const Bytes good = file_of(sizes_in_turn({3}), true, 0);
  Bytes file = good;
  static constexpr std::array<std::uint8_t, 2> kTables{0xFF, 0xC4};
  for (auto at = file.begin();;) {
    at = std::search(at, file.end(), kTables.begin(), kTables.end());
    if (at == file.end()) break;
    if (at[4] >> 4 == 1) {  // a table of AC codes
      const std::uint8_t number = at[4];
      file.erase(at + 2, at + 2 + at[2] * 256 + at[3]);
      Bytes empty(19);
      empty[1] = 19, empty[2] = number;
      at = file.insert(at + 2, empty.begin(), empty.end());
    }
    ++at;
  }
  JpegHuffman huffman;
  EXPECT_FALSE(decode(huffman, good, 0, 0, kColumns - 1)[0].empty());
  EXPECT_TRUE(decode(huffman, file, 0, 0, kColumns - 1)[0].empty());
  EXPECT_TRUE(decode(huffman, file, 9, 0, kColumns - 1)[0].empty());
  EXPECT_FALSE(decode(huffman, good, 0, 0, kColumns - 1)[0].empty());
}

Bytes region_of(ImageDecoder& decoder, const Bytes& file, const PixelRectangle& region) {
  Bytes pixels(static_cast<std::size_t>(region.width * region.height * 3));
  decoder.open(file);
  decoder.read(region, 1, pixels.data());
  return pixels;
}

// The whole image, and regions before which rows and columns are skipped.
const std::vector<PixelRectangle> kRegions{{0, 0, kWidth, kHeight}, {100, 200, 40, 56}, {0, 250, 192, 6},
                                           {190, 0, 2, 256},        {70, 40, 9, 150},   {0, 0, 20, 256}};

// Skipping must understand damaged codes as decoding does. A region of a damaged file that is
// readable as a whole must be readable and have the pixels of its part. A region of a file that is
// cut short must be refused or have the pixels of the good file.
TEST(JpegHuffman, DamageIsSkippedAsItIsDecoded) {
  ImageDecoder decoder(ImageFormat::encoded, {0, 0, 3});
  const auto attempt = [&](const Bytes& file, const PixelRectangle& region) {
    try {
      return region_of(decoder, file, region);
    } catch (const std::runtime_error&) {
      return Bytes();
    }
  };
  std::mt19937 random(3);
  int readable = 0, refused = 0;
  for (const auto& [name, fill] : kContents) {
    const Bytes good = file_of(fill, false, 0);
    for (int trial = 0; trial < 40; ++trial) {
      Bytes bad = good;
      // The headers take about 600 bytes.
      const std::size_t at = 700 + random() % (good.size() - 702);
      const bool short_file = trial % 4 == 0;
      if (short_file)
        bad.resize(at);
      else
        bad[at] = static_cast<std::uint8_t>(bad[at] ^ 1u << random() % 8);
      const Bytes whole = attempt(short_file ? good : bad, kRegions[0]);
      ++(whole.empty() ? refused : readable);
      if (whole.empty()) continue;
      for (const PixelRectangle& region : kRegions) {
        const Bytes part = attempt(bad, region);
        if (short_file && part.empty()) continue;
        Bytes expected;
        for (std::int32_t y = region.y; y < region.y + region.height; ++y) {
          const auto from = whole.begin() + (y * kWidth + region.x) * 3;
          expected.insert(expected.end(), from, from + region.width * 3);
        }
        ASSERT_TRUE(part == expected)
            << name << ": byte " << at << ", region at " << region.x << ", " << region.y;
      }
    }
  }
  EXPECT_GT(readable, 100);
  EXPECT_GT(refused, 10);
}

// Damaged codes must give the coefficients that libjpeg-turbo reads from them.
TEST(JpegHuffman, DamagedCodesGiveTheCoefficientsOfLibjpeg) {
  JpegHuffman huffman;
  std::mt19937 random(4);
  int compared = 0;
  for (const auto& [name, fill] : kContents) {
    const Bytes good = file_of(fill, false, 0);
    for (int trial = 0; trial < 20; ++trial) {
      Bytes bad = good;
      const std::size_t at = 700 + random() % (good.size() - 702);
      bad[at] = static_cast<std::uint8_t>(bad[at] ^ 1u << random() % 8);
      const auto decoded = decode(huffman, bad, 0, 0, kColumns - 1);
      if (decoded[0].empty()) continue;
      jpeg_decompress_struct jpeg{};
      jpeg_error_mgr errors{};
      jpeg.err = jpeg_std_error(&errors);
      errors.emit_message = [](j_common_ptr, int) {};
      jpeg_create_decompress(&jpeg);
      jpeg_mem_src(&jpeg, bad.data(), bad.size());
      jpeg_read_header(&jpeg, TRUE);
      jvirt_barray_ptr* const arrays = jpeg_read_coefficients(&jpeg);
      auto* const common = reinterpret_cast<j_common_ptr>(&jpeg);
      bool same = true;
      for (std::size_t c = 0; c < 3; ++c)
        for (int row = 0; row < kRows; ++row) {
          const JBLOCK* const blocks =
              jpeg.mem->access_virt_barray(common, arrays[c], static_cast<JDIMENSION>(row), 1, FALSE)[0];
          for (int column = 0; column < kColumns; ++column) {
            const Block& block = decoded[c][static_cast<std::size_t>(row * kColumns + column)];
            same = same && std::equal(block.begin(), block.end(), blocks[column]);
          }
        }
      jpeg_destroy_decompress(&jpeg);
      EXPECT_TRUE(same) << name << ": byte " << at;
      ++compared;
    }
  }
  EXPECT_GT(compared, 50);
}

}  // namespace
}  // namespace convoy::data
