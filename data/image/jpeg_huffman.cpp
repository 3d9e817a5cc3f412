#include "data/image/jpeg_huffman.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace convoy::data {
namespace {

constexpr int kBlock = DCTSIZE2;
// The most bytes of an MCU (minimum coded unit), and what refill() reads ahead, up to 16 bytes.
// Each coefficient takes at most 31 bits, a Huffman code and a value, and 32 are counted here.
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

// Returns the value that the last `size` of the first `used` bits code (T.81, F.2.2.1). Bits that
// begin with 0 code a negative value. Has no branches, because a processor could not predict them.
int value_of(std::uint64_t bits, int used, int size) {
  const int mask = (1 << size) - 1, value = static_cast<int>(std::rotl(bits, used)) & mask;
  return value - (mask & (2 * value - mask - 1) >> 31);
}

int take_value(JpegBits& bits, int size) {
  const int value = value_of(bits.bits, size, size);
  bits.drop(size);
  return value;
}

// Each of the following functions extracts one field of a JpegCodes::Pair or JpegCodes::Run.
int used_bits(std::uint32_t found) { return static_cast<int>(found & 63); }
int advance_of(JpegCodes::Run run) { return run >> 6; }
int advance_of(JpegCodes::Pair pair) { return static_cast<int>(pair >> 6 & 0x3FF); }
int last_size(JpegCodes::Pair pair) { return static_cast<int>(pair >> 16 & 15); }
int zeros_of(JpegCodes::Pair pair) { return static_cast<int>(pair >> 20 & 15); }
int first_value(JpegCodes::Pair pair) { return static_cast<std::int32_t>(pair) >> 24; }

// Returns the fields that Pair and Run have in common, of one code and its value.
std::uint32_t run_of(int length, int symbol) {
  const int zeros = symbol >> 4, size = symbol & 15;
  const auto advance = static_cast<std::uint32_t>(zeros + 1);
  return static_cast<std::uint32_t>(length + size) | (size > 0 || zeros == 15 ? advance : JpegCodes::kEnd)
                                                         << 6;
}

// Calls visit(length, symbol) for each code of at most `most` bits, in the order of the codes.
template <typename Visit>
void for_each_code(const JHUFF_TBL& table, int most, const Visit& visit) {
  const UINT8* symbol = table.huffval;
  for (int length = 1; length <= most; ++length)
    for (int i = 0; i < table.bits[length]; ++i) visit(length, *symbol++);
}

}  // namespace

inline void JpegBits::refill() {
  std::uint64_t bytes;
  std::memcpy(&bytes, next, sizeof bytes);
  if constexpr (std::endian::native == std::endian::little) bytes = __builtin_bswap64(bytes);
  bits |= bytes >> count;
  next += (63 - count) >> 3;
  count |= 56;
}

JpegCodes::JpegCodes() { fill_pairs(), fill_runs(); }

void JpegCodes::set(const JHUFF_TBL& table, bool ac) {
  if (std::memcmp(table.bits, table_.bits, sizeof table.bits) == 0 &&
      std::memcmp(table.huffval, table_.huffval, sizeof table.huffval) == 0)
    return;
  table_ = table;
  fill_singles();
  if (ac) fill_pairs(), fill_runs();
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

// Fills pairs_ from the first entry to the last. This is the order of the codes.
void JpegCodes::fill_pairs() {
  // A Pair stores its first value in 8 bits with a sign, so a value may have at most 7 bits.
  constexpr int kMostSize = 7;
  // The entries from 1 << n on hold the code that the last n bits of a look-up begin with. They are
  // 0 if there is none.
  std::array<Pair, 2 << kLookBits> seconds;
  for (int n = 0; n <= kLookBits; ++n) {
    Pair* to = seconds.data() + (1 << n);
    for_each_code(table_, n, [&](int length, int symbol) {
      const int size = symbol & 15, used = kLookBits - n + length + size;
      const Pair second = used > kMostBits ? 0 : run_of(length, symbol) | static_cast<Pair>(size) << 16;
      to = std::fill_n(to, 1 << (n - length), second);
    });
    std::fill(to, seconds.data() + (2 << n), 0);
  }
  Pair* to = pairs_.data();
  for_each_code(table_, kLookBits, [&](int length, int symbol) {
    const int zeros = symbol >> 4, size = symbol & 15, rest = kLookBits - length - size;
    const Pair first = run_of(length, symbol) | static_cast<Pair>(zeros) << 20;
    if (length + size > kMostBits) {
      to = std::fill_n(to, 1 << (kLookBits - length), kUnknown << 6);
    } else if (rest <= 0 || size > kMostSize || advance_of(first) >= static_cast<int>(kEnd)) {
      to = std::fill_n(to, 1 << (kLookBits - length), first | static_cast<Pair>(size) << 16);
    } else {
      for (int bits = 0; bits < 1 << size; ++bits, to += 1 << rest) {
        const int value = bits < 1 << size >> 1 ? bits - (1 << size) + 1 : bits;
        const Pair more = first | static_cast<Pair>(value) << 24;
        const Pair* second = seconds.data() + (1 << rest);
        for (int i = 0; i < 1 << rest; ++i)
          to[i] = second[i] + (second[i] != 0 ? more : first | static_cast<Pair>(size) << 16);
      }
    }
  });
  std::fill(to, pairs_.data() + pairs_.size(), kUnknown << 6);
}

// Fills runs_ for 0 to kLookBits bits, each from the first entry to the last. The bits after a code
// and its value are looked up in the entries for that many bits, which are already filled.
void JpegCodes::fill_runs() {
  for (int n = 0; n <= kLookBits; ++n) {
    const Run none = n < kLookBits ? 0 : kUnknown << 6;
    Run* to = runs_.data() + (1 << n);
    for_each_code(table_, n, [&](int length, int symbol) {
      const int size = symbol & 15, rest = n - length - size;
      const auto run = static_cast<Run>(run_of(length, symbol));
      if (kLookBits - rest > kMostBits) {
        to = std::fill_n(to, 1 << (n - length), none);
      } else if (rest <= 0 || advance_of(run) >= static_cast<int>(kEnd)) {
        to = std::fill_n(to, 1 << (n - length), run);
      } else {
        for (int bits = 0; bits < 1 << size; ++bits, to += 1 << rest)
          for (int i = 0; i < 1 << rest; ++i) to[i] = static_cast<Run>(runs_[(1 << rest) + i] + run);
      }
    });
    std::fill(to, runs_.data() + (2 << n), none);
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
      jpeg.comps_in_scan != jpeg.num_components || jpeg.Ss != 0 || jpeg.Se != kBlock - 1)
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
  requested_ = 0;
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
  const std::int64_t mcu = requested_++, column = mcu % columns_;
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
  const auto store = [=](std::ptrdiff_t k, int value) { to[kPlace[k]] = static_cast<JCOEF>(value); };
  for (std::ptrdiff_t k = 1; k < kBlock;) {
    bits.refill();
    // refill() provides 56 bits. The first two look-ups use at most 36 of them, so the third has
    // 20, enough for any look-up and any code. Only a value after the code needs another refill().
    static_assert(3 * JpegCodes::kMostBits <= 56 && 56 - 2 * JpegCodes::kMostBits >= 16);
    for (int look_ups = 0; look_ups < 3; ++look_ups) {
      std::conditional_t<kStore, JpegCodes::Pair, JpegCodes::Run> found;
      if constexpr (kStore)
        found = codes.pair(bits);
      else
        found = codes.run(bits);
      const std::ptrdiff_t advance = advance_of(found), next = k + advance;
      if (next < kBlock) {
        if constexpr (kStore) {
          // If the pair has only one coefficient, both stores go to the same position, and the
          // second one overwrites the first.
          store(k + zeros_of(found), first_value(found));
          store(next - 1, value_of(bits.bits, used_bits(found), last_size(found)));
        }
        bits.drop(used_bits(found));
        k = next;
        continue;
      }
      // The look-up ends the block, has an unknown code, or goes beyond the block.
      const bool ends = advance >= static_cast<int>(JpegCodes::kEnd);
      const std::ptrdiff_t end = next - (ends ? static_cast<int>(JpegCodes::kEnd) : 0);
      if (ends && end < kBlock) {
        bits.drop(used_bits(found));
        if constexpr (kStore)
          if (first_value(found) != 0) store(k + zeros_of(found), first_value(found));
        return all_bits = bits, true;
      }
      const int symbol = codes.symbol(bits), size = symbol & 15;
      if (symbol < 0) return false;
      if (size == 0 && symbol >> 4 < 15) return all_bits = bits, true;
      bits.refill();
      k += symbol >> 4;
      const int value = take_value(bits, size);
      if constexpr (kStore)
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
