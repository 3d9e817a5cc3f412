#include "data/image/jpeg_huffman.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace convoy::data {
namespace {

constexpr int kBlock = DCTSIZE2;
// The most bytes of an MCU (minimum coded unit). Each coefficient takes at most 31 bits: a Huffman
// code and a value.
constexpr std::size_t kMcuBytes = D_MAX_BLOCKS_IN_MCU * kBlock * 4;
// Scans in which a sum of DC differences is larger are left to libjpeg-turbo, which refuses sums
// beyond 32 bits.
constexpr int kMostDc = 1 << 30;

// The position in the block of each coefficient in zigzag order (T.81, figure A.6). Damaged data
// may lead beyond the block. As in libjpeg-turbo, such coefficients go to the last position.
constexpr auto kPlace = [] {
  std::array<std::uint8_t, kBlock + 16> places{};
  std::size_t k = 0;
  for (int diagonal = 0; diagonal <= 2 * (DCTSIZE - 1); ++diagonal) {
    for (int i = std::max(0, diagonal - DCTSIZE + 1); i <= std::min(diagonal, DCTSIZE - 1); ++i) {
      const int row = diagonal % 2 == 0 ? diagonal - i : i;
      places[k++] = static_cast<std::uint8_t>(row * DCTSIZE + diagonal - row);
    }
  }
  std::fill(places.begin() + kBlock, places.end(), kBlock - 1);
  return places;
}();

// Returns the value that is coded by `size` bits (T.81, F.2.2.1). Bits that begin with 0 code a
// negative value.
int extended(std::uint32_t bits, int size) {
  const auto value = static_cast<int>(bits);
  return value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
}

int take_value(JpegBits& bits, int size) {
  if (size == 0) return 0;
  const std::uint32_t taken = bits.peek(size);
  bits.drop(size);
  return extended(taken, size);
}

// Each of the following functions extracts one field of a JpegCodes::Pair.
int used_bits(JpegCodes::Pair pair) { return static_cast<int>(pair & 63); }
int zeros_of(JpegCodes::Pair pair) { return static_cast<int>(pair >> 6 & 15); }
int advance_of(JpegCodes::Pair pair) { return static_cast<int>(pair >> 10 & 0x7F); }
int first_value(JpegCodes::Pair pair) { return static_cast<std::int8_t>(pair >> 17); }
int second_value(JpegCodes::Pair pair) { return static_cast<std::int32_t>(pair) >> 25; }

}  // namespace

inline void JpegBits::refill() {
  std::uint64_t bytes;
  std::memcpy(&bytes, next, sizeof bytes);
  if constexpr (std::endian::native == std::endian::little) bytes = __builtin_bswap64(bytes);
  bits |= bytes >> count;
  next += (63 - count) >> 3;
  count |= 56;
}

void JpegCodes::set(const JHUFF_TBL& table, bool ac) {
  if (std::memcmp(table.bits, table_.bits, sizeof table.bits) == 0 &&
      std::memcmp(table.huffval, table_.huffval, sizeof table.huffval) == 0)
    return;
  table_ = table;
  fill_singles();
  if (ac) fill_pairs();
}

// Fills the table that finds a single code. Codes of one length are consecutive numbers. The codes
// of the next length continue after them (T.81, C.2).
void JpegCodes::fill_singles() {
  singles_.fill({0, 0});
  std::int32_t code = 0, index = 0;
  for (int length = 1; length <= 16; ++length, code <<= 1) {
    first_index_[length] = index - code;
    const int room = kLookBits - length;
    for (int i = 0; i < table_.bits[length]; ++i, ++code, ++index)
      if (room >= 0)
        std::fill_n(singles_.begin() + (code << room), 1 << room,
                    Single{table_.huffval[index], static_cast<std::uint8_t>(length)});
    code_end_[length] = code;
  }
}

void JpegCodes::fill_pairs() {
  // A Pair stores its first value in 8 bits with a sign, so a value may have at most 7 bits.
  constexpr int kMostSize = 7;
  std::array<Pair, 1 << kLookBits> firsts;
  for (std::uint32_t bits = 0; bits < firsts.size(); ++bits) {
    const auto [symbol, length] = singles_[bits];
    const int zeros = symbol >> 4, size = symbol & 15, used = length + size;
    Pair& first = firsts[bits];
    if (length == 0 || used > kLookBits || size > kMostSize) {
      first = kUnknown << 10;
    } else if (size == 0) {
      first = static_cast<Pair>(used) | (zeros < 15 ? kEnd << 10 : 15 << 6 | 16 << 10);
    } else {
      const int value = extended(bits >> (kLookBits - used) & ((1U << size) - 1), size);
      first = static_cast<Pair>(used | zeros << 6 | (zeros + 1) << 10 | (value & 0xFF) << 17);
    }
  }
  for (std::uint32_t bits = 0; bits < firsts.size(); ++bits) {
    const Pair first = firsts[bits];
    pairs_[bits] = first;
    if (advance_of(first) >= static_cast<int>(kEnd)) continue;
    const Pair second = firsts[bits << used_bits(first) & (firsts.size() - 1)];
    if (advance_of(second) == static_cast<int>(kUnknown) || used_bits(first) + used_bits(second) > kLookBits)
      continue;
    const int value = first_value(second);
    // A Pair has only 7 bits, with a sign, for its second value.
    if (value < -64 || value > 63) continue;
    pairs_[bits] += (second & 0x1FC3F) | static_cast<Pair>(value) << 25;
  }
}

int JpegCodes::symbol(JpegBits& bits) const {
  const Single single = singles_[bits.peek(kLookBits)];
  bits.drop(single.length);
  if (single.length > 0) return single.symbol;
  for (int length = kLookBits + 1; length <= 16; ++length) {
    const auto code = static_cast<std::int32_t>(bits.peek(length));
    if (code >= code_end_[length]) continue;
    bits.drop(length);
    return table_.huffval[(code + first_index_[length]) & 0xFF];
  }
  return -1;
}

bool JpegHuffman::start(const jpeg_decompress_struct& jpeg, std::span<const std::uint8_t> scan) {
  if (scan.size() > kLargestScan || jpeg.progressive_mode || jpeg.arith_code || jpeg.data_precision != 8 ||
      jpeg.comps_in_scan != jpeg.num_components)
    return false;
  interval_ = jpeg.restart_interval;
  if (!find_segments(scan)) return false;
  columns_ = jpeg.MCUs_per_row;
  set_columns(0, columns_ - 1);
  blocks_.clear();
  for (int i = 0; i < jpeg.blocks_in_MCU; ++i) {
    const auto component = static_cast<std::size_t>(jpeg.MCU_membership[i]);
    const jpeg_component_info& info = *jpeg.cur_comp_info[component];
    JpegCodes &dc = dc_codes_[info.dc_tbl_no], &ac = ac_codes_[info.ac_tbl_no];
    dc.set(*jpeg.dc_huff_tbl_ptrs[info.dc_tbl_no], false);
    ac.set(*jpeg.ac_huff_tbl_ptrs[info.ac_tbl_no], true);
    blocks_.push_back({&dc, &ac, component});
  }
  asked_ = 0;
  return begin_segment(0);
}

// Copies the scan up to its end and records where the segments between restart markers end. The
// scan ends at the first marker that is not a restart marker.
bool JpegHuffman::find_segments(std::span<const std::uint8_t> scan) {
  const std::uint8_t *from = scan.data(), *const end = from + scan.size();
  if (bytes_.size() < scan.size() + kMcuBytes) bytes_.resize(scan.size() + kMcuBytes);
  std::uint8_t* to = bytes_.data();
  segment_ends_.clear();
  const auto end_segment = [&] { segment_ends_.push_back(static_cast<std::size_t>(to - bytes_.data())); };
  for (;;) {
    const auto left = static_cast<std::size_t>(end - from);
    const auto* mark = left > 0 ? static_cast<const std::uint8_t*>(std::memchr(from, 0xFF, left)) : nullptr;
    const std::uint8_t* stop = mark != nullptr ? mark : end;
    to = std::copy(from, stop, to);
    from = stop;
    while (from < end && *from == 0xFF) ++from;
    rest_ = {stop, end};
    if (from == end) break;
    const std::uint8_t code = *from++;
    if (code == 0) {
      *to++ = 0xFF;
    } else if (interval_ > 0 && code >= JPEG_RST0 && code < JPEG_RST0 + 8) {
      if (code - JPEG_RST0 != static_cast<int>(segment_ends_.size() % 8)) return false;
      end_segment();
    } else {
      break;
    }
  }
  end_segment();
  std::fill_n(to, kMcuBytes, std::uint8_t{0});
  return true;
}

bool JpegHuffman::begin_segment(std::size_t segment) {
  if (segment >= segment_ends_.size()) return false;
  segment_ = segment;
  decoded_ = static_cast<std::int64_t>(segment) * interval_;
  bits_ = {bytes_.data() + (segment > 0 ? segment_ends_[segment - 1] : 0), 0, 0};
  last_dc_.fill(0);
  return true;
}

bool JpegHuffman::decode(JBLOCKROW* blocks) {
  const std::int64_t mcu = asked_++, column = mcu % columns_;
  if (blocks == nullptr || column < first_column_ || column > last_column_) return true;
  const auto segment = static_cast<std::size_t>(interval_ > 0 ? mcu / interval_ : 0);
  if (segment != segment_ && !begin_segment(segment)) return false;
  while (decoded_ < mcu)
    if (!decode_mcu<false>(nullptr)) return false;
  return decode_mcu<true>(blocks);
}

template <bool kStore>
bool JpegHuffman::decode_ac(const JpegCodes& codes, JpegBits& all_bits, JCOEF* to) {
  JpegBits bits = all_bits;  // a local copy, which the compiler can keep in registers
  const auto store = [=](int k, int value) {
    if constexpr (kStore) to[kPlace[k]] = static_cast<JCOEF>(value);
  };
  for (int k = 1; k < kBlock;) {
    bits.refill();
    // refill() provides 56 bits. The first three look-ups use at most 33 of them, so the fourth has
    // 23, which is enough for any code. Before the value of a long code, refill() is called again.
    for (int look_ups = 0; look_ups < 4; ++look_ups) {
      const JpegCodes::Pair pair = codes.pair(bits);
      const int advance = advance_of(pair), next = k + advance;
      if (next < kBlock) {
        // If the pair has only one coefficient, both stores go to the same position, and the second
        // one overwrites the first.
        store(next - 1, second_value(pair));
        store(k + zeros_of(pair), first_value(pair));
        bits.drop(used_bits(pair));
        k = next;
        continue;
      }
      // The pair ends the block, has an unknown code, or goes beyond the block.
      const bool ends = advance >= static_cast<int>(JpegCodes::kEnd);
      const int end = next - (ends ? static_cast<int>(JpegCodes::kEnd) : 0);
      if (ends && end < kBlock) {
        bits.drop(used_bits(pair));
        if (first_value(pair) != 0) store(k + zeros_of(pair), first_value(pair));
        return all_bits = bits, true;
      }
      const int symbol = codes.symbol(bits), size = symbol & 15;
      if (symbol < 0) return false;
      if (size == 0 && symbol >> 4 < 15) return all_bits = bits, true;
      bits.refill();
      k += symbol >> 4;
      const int value = take_value(bits, size);
      if (size > 0) store(k, value);
      ++k;
      break;
    }
  }
  return all_bits = bits, true;
}

template <bool kStore>
bool JpegHuffman::decode_mcu(JBLOCKROW* blocks) {
  JpegBits bits = bits_;
  for (const Block& block : blocks_) {
    JCOEF* const to = kStore ? **blocks++ : nullptr;
    bits.refill();  // 56 bits, enough for a symbol and its value
    const int size = block.dc->symbol(bits);
    if (size < 0) return false;
    const int dc = last_dc_[block.component] += take_value(bits, size);
    if (dc > kMostDc || dc < -kMostDc) return false;
    if constexpr (kStore) to[0] = static_cast<JCOEF>(dc);
    if (!decode_ac<kStore>(*block.ac, bits, to)) return false;
  }
  bits_ = bits;
  ++decoded_;
  const auto end = static_cast<std::ptrdiff_t>(segment_ends_[segment_]);
  return (bits.next - bytes_.data()) * 8 - bits.count <= end * 8;
}

}  // namespace convoy::data
