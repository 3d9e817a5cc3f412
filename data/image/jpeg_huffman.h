// Decodes the Huffman codes of a sequential JPEG scan in place of libjpeg-turbo, which still reads
// the tables, computes the inverse transform, upsamples and converts colours. This decoder is
// faster for two reasons. One table look-up yields up to two coefficients, or passes over many
// outside the region that is needed. And it skips segments between restart markers (ITU-T T.81,
// E.1.4) that do not touch the region.
//
// The coefficients equal those of libjpeg-turbo. Damaged and unusual scans are left to
// libjpeg-turbo's own decoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
// jpeglib.h needs FILE declared before it.
#include <jpeglib.h>

#include <array>
#include <span>
#include <vector>

namespace convoy::data {

// Reads the bits of a scan. Within a byte, the most significant bit comes first.
struct JpegBits {
  const std::uint8_t* next = nullptr;  // the byte that the next refill() starts with
  std::uint64_t bits = 0;              // the next `count` bits of the scan, from the most significant bit on
  int count = 0;

  void refill();  // reads up to 8 bytes; count becomes at least 56
  void drop(int n) { bits <<= n, count -= n; }
  std::uint32_t peek(int n) const { return static_cast<std::uint32_t>(bits >> (64 - n)); }
};

// One Huffman table, prepared to decode the next kLookBits bits with one look-up.
class JpegCodes {
 public:
  static constexpr int kLookBits = 10;
  // The result of one look-up of AC codes. The last of its codes must lie within kLookBits bits,
  // but the value after this code need not. The fields, from the lowest bit on:
  //   6 bits   the number of bits that the codes and values take, at most kMostBits; lowest,
  //            because shifts use only these bits
  //   10       the number of coefficients, including zeros. kEnd is added if the block ends after
  //            them. kUnknown means that the bits do not contain a whole code, or that the code and
  //            its value take more than kMostBits. A run of 16 zeros counts as 16 coefficients.
  // A Run has all codes that fit, up to the end of the block, and no values. It serves to skip.
  using Run = std::uint16_t;
  // A Pair has at most two codes, and these fields in addition:
  //   4 bits   the size of the last value, which comes last in the used bits; 0 if the value is 0
  //   4        the number of zeros before the first coefficient
  //   8        the first value, which is overwritten by the last one if there is only one
  using Pair = std::uint32_t;
  static constexpr int kMostBits = 18;
  static constexpr std::uint32_t kEnd = 512, kUnknown = 256;

  JpegCodes();  // makes a table without codes
  // Prepares the look-up of DC or AC coefficients. Only AC tables have pairs and runs. Does nothing
  // if `table` is the one already prepared.
  void set(const JHUFF_TBL& table, bool ac);
  Pair pair(const JpegBits& bits) const { return pairs_[bits.peek(kLookBits)]; }
  Run run(const JpegBits& bits) const { return runs_[(1 << kLookBits) + bits.peek(kLookBits)]; }
  // Removes the next code from `bits` and returns its symbol, or -1 if there is no such code.
  int symbol(JpegBits& bits) const;

 private:
  struct Single {
    std::uint8_t symbol, length;  // The length is 0 if the code is longer than kLookBits.
  };
  void fill_singles();
  void fill_pairs();
  void fill_runs();

  JHUFF_TBL table_{};
  std::array<Single, 1 << kLookBits> singles_{};
  std::array<Pair, 1 << kLookBits> pairs_{};
  // The entries from 1 << n on hold the codes that the last n bits of a look-up contain.
  std::array<Run, 2 << kLookBits> runs_{};
  // For each code length: the last code of this length plus 1, and the number to add to a code to
  // get the index of its symbol.
  std::array<std::int32_t, 17> code_end_{}, first_index_{};
};

class JpegHuffman {
 public:
  // Larger scans are left to libjpeg-turbo, because this decoder needs a copy of the scan.
  static constexpr std::size_t kLargestScan = 8 << 20;
  // Prepares for a file that jpeg_start_decompress() has opened. Returns whether this decoder can
  // decode it: the file must have only one scan, of at most kLargestScan bytes. `scan` holds the
  // bytes after the header of the scan, and must stay valid until the image is decoded.
  bool start(const jpeg_decompress_struct& jpeg, std::span<const std::uint8_t> scan);
  // Sets the range of MCU columns (T.81, A.2) that are needed. By default all columns are needed.
  void set_columns(std::int64_t first, std::int64_t last) { first_column_ = first, last_column_ = last; }
  // Decodes the next MCU of the scan into `blocks`, whose coefficients must be zero. If `blocks` is
  // null, skips the MCU. Returns false if libjpeg-turbo must decode the image instead.
  bool decode(JBLOCKROW* blocks);
  // Returns the bytes of the file after the scan.
  std::span<const std::uint8_t> rest() const { return rest_; }

 private:
  struct Block {
    const JpegCodes *dc, *ac;
    std::size_t component;
  };
  bool find_segments(std::span<const std::uint8_t> scan);
  bool begin_segment(std::size_t segment);
  template <bool kStore>
  static bool decode_ac(const JpegCodes& codes, JpegBits& bits, JCOEF* to);
  template <bool kStore>
  bool decode_mcu(JBLOCKROW* blocks);

  std::vector<std::uint8_t> bytes_;  // the scan without stuffed bytes and markers, then zeros
  // For each segment between restart markers: its end in bytes_.
  std::vector<std::size_t> segment_ends_;
  std::span<const std::uint8_t> rest_;
  std::array<JpegCodes, NUM_HUFF_TBLS> dc_codes_, ac_codes_;
  std::vector<Block> blocks_;  // the blocks of an MCU, in the order of the scan
  std::int64_t interval_ = 0, columns_ = 0, first_column_ = 0, last_column_ = 0;
  // The number of MCUs that libjpeg has requested, and the number that were decoded.
  std::int64_t requested_ = 0, decoded_ = 0;
  std::size_t segment_ = 0;
  JpegBits bits_;
  std::array<int, MAX_COMPS_IN_SCAN> last_dc_{};
};

}  // namespace convoy::data
