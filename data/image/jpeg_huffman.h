// Decodes the Huffman codes of a sequential JPEG scan in place of libjpeg-turbo, which does all the
// rest: tables, inverse transform, upsampling, colours. It takes less time, because one look-up
// gives up to two coefficients, and because it decodes only what a region needs: blocks outside of
// the region leave no coefficients, and segments between restart markers (ITU-T T.81, E.1.4) are
// passed over.
//
// The coefficients are those of libjpeg-turbo. Scans that are damaged or unusual are left to its
// own decoder.
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

// The bits of a scan, the most significant one of a byte first.
struct JpegBits {
  const std::uint8_t* next = nullptr;  // the byte that the next refill() starts with
  std::uint64_t bits = 0;              // `count` known ones at the top
  int count = 0;

  void refill();  // reads up to 8 bytes; count becomes at least 56
  void drop(int n) { bits <<= n, count -= n; }
  std::uint32_t peek(int n) const { return static_cast<std::uint32_t>(bits >> (64 - n)); }
};

// One Huffman table, made ready for looking up the next kLookBits bits.
class JpegCodes {
 public:
  static constexpr int kLookBits = 11;
  // One or two coefficients whose codes and values the looked-up bits hold, from the lowest bit on:
  //   4 bits   the bits that they take
  //   4        the zeros before the first one
  //   8        the coefficients that they make with the zeros before them. kEnd is added if the
  //            block ends after them; kUnknown means that the bits do not hold the first one.
  //   8, 8     their values; of one alone the second value is 0, and of 16 zeros the first one is.
  using Pair = std::uint32_t;
  static constexpr std::uint32_t kEnd = 64, kUnknown = 127;

  // Takes the table of DC or AC coefficients; pairs are those of AC coefficients. Does nothing if
  // it has it already.
  void set(const JHUFF_TBL& table, bool ac);
  Pair pair(const JpegBits& bits) const { return pairs_[bits.peek(kLookBits)]; }
  // Takes one symbol; returns -1 if there is no such code.
  int symbol(JpegBits& bits) const;

 private:
  struct Single {
    std::uint8_t symbol, length;  // 0: longer than kLookBits
  };
  void fill_singles();
  void fill_pairs();

  JHUFF_TBL table_{};
  std::array<Single, 1 << kLookBits> singles_{};
  std::array<Pair, 1 << kLookBits> pairs_{};
  std::array<std::int32_t, 17> code_end_{}, first_index_{};  // by length; the index is that of code 0
};

class JpegHuffman {
 public:
  // Returns whether it can decode the file's only scan; the file has been opened by
  // jpeg_start_decompress(). `scan` holds what follows the header of the scan, and must stay where
  // it is.
  bool start(const jpeg_decompress_struct& jpeg, std::span<const std::uint8_t> scan);
  // Columns of MCUs (T.81, A.2) that are needed; all of them if it is not called.
  void set_columns(std::int64_t first, std::int64_t last) { first_column_ = first, last_column_ = last; }
  // Takes the next MCU of the scan. `blocks` has room for its coefficients, which are zero, or is
  // null. Returns false if libjpeg-turbo must decode the image.
  bool decode(JBLOCKROW* blocks);
  // The file from the end of the scan on.
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

  std::vector<std::uint8_t> bytes_;        // the scan without stuffed bytes and markers, then zeros
  std::vector<std::size_t> segment_ends_;  // in bytes_
  std::span<const std::uint8_t> rest_;
  std::array<JpegCodes, NUM_HUFF_TBLS> dc_codes_, ac_codes_;
  std::vector<Block> blocks_;  // of an MCU
  std::int64_t interval_ = 0, columns_ = 0, first_column_ = 0, last_column_ = 0;
  std::int64_t asked_ = 0, decoded_ = 0;  // MCUs
  std::size_t segment_ = 0;
  JpegBits bits_;
  std::array<int, MAX_COMPS_IN_SCAN> last_dc_{};
};

}  // namespace convoy::data
