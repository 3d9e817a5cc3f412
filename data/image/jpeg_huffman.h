// Decodes the Huffman codes of a sequential JPEG scan in place of libjpeg-turbo, which still does
// the rest: it reads the tables, computes the inverse transform, upsamples and converts colours.
// This decoder is faster because one look-up gives up to two coefficients, and because it decodes
// only what a region needs: it stores no coefficients of blocks outside the region, and skips
// segments between restart markers (ITU-T T.81, E.1.4) that the region does not touch.
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

// Reads the bits of a scan, in each byte from the most significant one on.
struct JpegBits {
  const std::uint8_t* next = nullptr;  // the byte that the next refill() starts with
  std::uint64_t bits = 0;              // the next `count` bits of the scan, at the top
  int count = 0;

  void refill();  // reads up to 8 bytes; count becomes at least 56
  void drop(int n) { bits <<= n, count -= n; }
  std::uint32_t peek(int n) const { return static_cast<std::uint32_t>(bits >> (64 - n)); }
};

// One Huffman table, made ready for looking up the next kLookBits bits.
class JpegCodes {
 public:
  static constexpr int kLookBits = 11;
  // One or two coefficients, found with one look-up. Its fields, from the lowest bit on:
  //   6 bits   how many bits the codes and values take; lowest, because shifts use these bits only
  //   4        the number of zeros before the first coefficient
  //   7        the number of coefficients, zeros included. kEnd is added if the block ends after
  //            them; kUnknown means that the bits do not hold the first one.
  //   8, 7     their values. The second value is 0 if there is one coefficient; 16 zeros count as
  //            one coefficient of value 0.
  using Pair = std::uint32_t;
  static constexpr std::uint32_t kEnd = 64, kUnknown = 127;

  // Prepares a table of DC or AC coefficients; only AC tables have pairs. Does nothing if the table
  // is prepared already.
  void set(const JHUFF_TBL& table, bool ac);
  Pair pair(const JpegBits& bits) const { return pairs_[bits.peek(kLookBits)]; }
  // Removes the next code from `bits` and returns its symbol, or -1 if there is no such code.
  int symbol(JpegBits& bits) const;

 private:
  struct Single {
    std::uint8_t symbol, length;  // The length is 0 if the code is longer than kLookBits.
  };
  void fill_singles();
  void fill_pairs();

  JHUFF_TBL table_{};
  std::array<Single, 1 << kLookBits> singles_{};
  std::array<Pair, 1 << kLookBits> pairs_{};
  // For each length of codes: the end of the codes of this length, and the number that is added to
  // such a code to get the index of its symbol.
  std::array<std::int32_t, 17> code_end_{}, first_index_{};
};

class JpegHuffman {
 public:
  // A larger scan is left to libjpeg-turbo, because this decoder copies it.
  static constexpr std::size_t kLargestScan = 8 << 20;
  // Prepares for a file that jpeg_start_decompress() has opened. Returns whether this decoder can
  // decode it: the file must have only one scan, of at most kLargestScan bytes. `scan` holds what
  // follows the header of the scan, and must stay where it is.
  bool start(const jpeg_decompress_struct& jpeg, std::span<const std::uint8_t> scan);
  // Sets the columns of MCUs (T.81, A.2) that are needed. Without a call all columns are needed.
  void set_columns(std::int64_t first, std::int64_t last) { first_column_ = first, last_column_ = last; }
  // Decodes the next MCU of the scan into `blocks`, whose coefficients must be zero, or skips it if
  // `blocks` is null. Returns false if libjpeg-turbo must decode the image.
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
  // For each segment (up to a restart marker): where it ends in bytes_.
  std::vector<std::size_t> segment_ends_;
  std::span<const std::uint8_t> rest_;
  std::array<JpegCodes, NUM_HUFF_TBLS> dc_codes_, ac_codes_;
  std::vector<Block> blocks_;  // the blocks of an MCU, in the order of the scan
  std::int64_t interval_ = 0, columns_ = 0, first_column_ = 0, last_column_ = 0;
  // The numbers of MCUs that libjpeg has asked for, and that were decoded.
  std::int64_t asked_ = 0, decoded_ = 0;
  std::size_t segment_ = 0;
  JpegBits bits_;
  std::array<int, MAX_COMPS_IN_SCAN> last_dc_{};
};

}  // namespace convoy::data
