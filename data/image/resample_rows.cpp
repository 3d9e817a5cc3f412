#include "data/image/resample_rows.h"

#include <algorithm>
#include <cstring>

#include "kernels/device/bilinear.h"

#if CONVOY_VECTOR_LEVELS
// GCC 12 warns about the undefined operand in its own AVX-512 intrinsics (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#endif

namespace convoy::data {
namespace portable {

static void horizontal(const BilinearFilter& filter, const std::uint8_t* const* from, std::int64_t,
                       std::int64_t channels, std::uint8_t*, std::uint8_t* const* to) {
  const auto outputs = static_cast<std::int64_t>(filter.first.size());
  for (int row = 0; row < kRowsAtOnce; ++row) {
    const std::int32_t* weight = filter.weight.data();
    for (std::int64_t x = 0; x < outputs; ++x, weight += filter.taps) {
      const std::uint8_t* pixel = from[row] + filter.first[static_cast<std::size_t>(x)] * channels;
      for (std::int64_t c = 0; c < channels; ++c) {
        std::int32_t sum = kernels::kHalfWeight;
        for (std::int32_t tap = 0; tap < filter.taps; ++tap) sum += weight[tap] * pixel[tap * channels + c];
        to[row][x * channels + c] = kernels::rounded_pixel(sum);
      }
    }
  }
}

static void vertical(const std::int32_t* weight, std::int32_t taps, const std::uint8_t* from,
                     std::int64_t pitch, std::int64_t bytes, std::uint8_t* to) {
  constexpr std::int64_t kBlock = 64;
  for (std::int64_t begin = 0; begin < bytes; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, bytes - begin);
    std::int32_t sum[kBlock];
    std::fill_n(sum, kBlock, kernels::kHalfWeight);
    for (std::int32_t tap = 0; tap < taps; ++tap) {
      const std::uint8_t* row = from + tap * pitch + begin;
      for (std::int64_t i = 0; i < size; ++i) sum[i] += weight[tap] * row[i];
    }
    for (std::int64_t i = 0; i < size; ++i) to[begin + i] = kernels::rounded_pixel(sum[i]);
  }
}

}  // namespace portable

#if CONVOY_VECTOR_LEVELS
static inline __m128i load16(const std::uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
static inline void store16(std::uint8_t* to, __m128i value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value);
}

#pragma GCC push_options
#pragma GCC target("avx2")
namespace avx2 {

constexpr bool kFewRegisters = true;

// Sixteen weighted sums of bytes.
class Sums {
 public:
  // The constructor is written out. GCC would not compile a generated one with the instructions
  // that the pragma above selects.
  Sums() : low_(_mm256_set1_epi32(kernels::kHalfWeight)), high_(low_) {}
  void add(std::int32_t weight, const std::uint8_t* bytes) {
    const __m256i factor = _mm256_set1_epi32(weight);
    const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
    const __m128i high = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + 8));
    low_ = _mm256_add_epi32(low_, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(low), factor));
    high_ = _mm256_add_epi32(high_, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(high), factor));
  }
  __m256i low() const { return _mm256_srai_epi32(low_, kernels::kWeightBits); }
  __m256i high() const { return _mm256_srai_epi32(high_, kernels::kWeightBits); }
  __m128i pixels() const {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low(), high()), 0xD8);
    return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  }

 private:
  __m256i low_, high_;
};

static inline __m256i spread_two(const std::uint8_t* first, const std::uint8_t* second, __m128i spread) {
  const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(first)), load16(second), 1);
  return _mm256_shuffle_epi8(both, _mm256_broadcastsi128_si256(spread));
}

// Interleaves four pixels from each of four rows, so that one column of four pixels is contiguous.
// Reads 16 bytes of each row, starting at `at`; `spread` expands the pixels to 4 bytes each.
static inline void bring_together(const std::uint8_t* const* rows, std::int64_t at, __m128i spread,
                                  std::uint8_t* to) {
  const __m256i even = spread_two(rows[0] + at, rows[2] + at, spread);
  const __m256i odd = spread_two(rows[1] + at, rows[3] + at, spread);
  const __m256i first = _mm256_permute4x64_epi64(_mm256_unpacklo_epi32(even, odd), 0xD8);
  const __m256i second = _mm256_permute4x64_epi64(_mm256_unpackhi_epi32(even, odd), 0xD8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), first);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), second);
}

// Reverses bring_together(): writes four columns of sums as four pixels to each of four rows,
// always 16 bytes per row. `gather` reverses `spread`: it moves the bytes of the four pixels
// together.
static inline void take_apart(const Sums& a, const Sums& b, const Sums& c, const Sums& d, __m128i gather,
                              std::uint8_t* const* rows, std::int64_t at) {
  const __m256i order = _mm256_broadcastsi128_si256(gather);
  const __m256i first =
      _mm256_packus_epi16(_mm256_packus_epi32(a.low(), b.low()), _mm256_packus_epi32(c.low(), d.low()));
  const __m256i second =
      _mm256_packus_epi16(_mm256_packus_epi32(a.high(), b.high()), _mm256_packus_epi32(c.high(), d.high()));
  const __m256i upper = _mm256_shuffle_epi8(first, order), lower = _mm256_shuffle_epi8(second, order);
  store16(rows[0] + at, _mm256_castsi256_si128(upper));
  store16(rows[1] + at, _mm256_extracti128_si256(upper, 1));
  store16(rows[2] + at, _mm256_castsi256_si128(lower));
  store16(rows[3] + at, _mm256_extracti128_si256(lower, 1));
}

#include "data/image/resample_rows.inc"

}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512bw,avx512vl")
namespace avx512 {

constexpr bool kFewRegisters = false;

class Sums {
 public:
  Sums() : sums_(_mm512_set1_epi32(kernels::kHalfWeight)) {}
  void add(std::int32_t weight, const std::uint8_t* bytes) {
    const __m512i values = _mm512_cvtepu8_epi32(load16(bytes));
    sums_ = _mm512_add_epi32(sums_, _mm512_mullo_epi32(values, _mm512_set1_epi32(weight)));
  }
  __m512i values() const { return _mm512_srai_epi32(sums_, kernels::kWeightBits); }
  __m128i pixels() const { return _mm512_cvtusepi32_epi8(values()); }

 private:
  __m512i sums_;
};

static inline void bring_together(const std::uint8_t* const* rows, std::int64_t at, __m128i spread,
                                  std::uint8_t* to) {
  __m512i pixels = _mm512_castsi128_si512(load16(rows[0] + at));
  pixels = _mm512_inserti32x4(pixels, load16(rows[1] + at), 1);
  pixels = _mm512_inserti32x4(pixels, load16(rows[2] + at), 2);
  pixels = _mm512_inserti32x4(pixels, load16(rows[3] + at), 3);
  pixels = _mm512_shuffle_epi8(pixels, _mm512_broadcast_i32x4(spread));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, pixels));
}

static inline void take_apart(const Sums& a, const Sums& b, const Sums& c, const Sums& d, __m128i gather,
                              std::uint8_t* const* rows, std::int64_t at) {
  const __m512i bytes = _mm512_packus_epi16(_mm512_packus_epi32(a.values(), b.values()),
                                            _mm512_packus_epi32(c.values(), d.values()));
  const __m512i pixels = _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(gather));
  store16(rows[0] + at, _mm512_castsi512_si128(pixels));
  store16(rows[1] + at, _mm512_extracti32x4_epi32(pixels, 1));
  store16(rows[2] + at, _mm512_extracti32x4_epi32(pixels, 2));
  store16(rows[3] + at, _mm512_extracti32x4_epi32(pixels, 3));
}

#include "data/image/resample_rows.inc"

}  // namespace avx512
#pragma GCC pop_options
#endif

const ResampleRows& resample_rows(VectorLevel level) {
  static constexpr ResampleRows kPortable{portable::horizontal, portable::vertical};
#if CONVOY_VECTOR_LEVELS
  static constexpr ResampleRows kAvx2{avx2::horizontal, avx2::vertical};
  static constexpr ResampleRows kAvx512{avx512::horizontal, avx512::vertical};
  if (level == VectorLevel::avx2) return kAvx2;
  if (level == VectorLevel::avx512) return kAvx512;
#endif
  static_cast<void>(level);
  return kPortable;
}

}  // namespace convoy::data
