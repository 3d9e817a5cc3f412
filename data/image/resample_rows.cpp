#include "data/image/resample_rows.h"

#include <algorithm>
#include <cstring>

#include "kernels/device/bilinear.h"

#if CONVOY_VECTOR_LEVELS
// GCC 12 takes the undefined operand of its own AVX-512 functions for a mistake (its bug 105593).
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
#pragma GCC push_options
#pragma GCC target("avx2")
namespace avx2 {

// Sixteen sums of weighted bytes.
class Sums {
 public:
  // Written out: a constructor of the compiler's own would not be compiled for these instructions.
  Sums() : low_(_mm256_set1_epi32(kernels::kHalfWeight)), high_(low_) {}
  void add(std::int32_t weight, const std::uint8_t* bytes) {
    const __m256i factor = _mm256_set1_epi32(weight);
    const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
    const __m128i high = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + 8));
    low_ = _mm256_add_epi32(low_, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(low), factor));
    high_ = _mm256_add_epi32(high_, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(high), factor));
  }
  __m128i pixels() const {
    const __m256i pairs = _mm256_packus_epi32(_mm256_srai_epi32(low_, kernels::kWeightBits),
                                              _mm256_srai_epi32(high_, kernels::kWeightBits));
    const __m256i words = _mm256_permute4x64_epi64(pairs, 0xD8);
    return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  }

 private:
  __m256i low_, high_;
};

#include "data/image/resample_rows.inc"

}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512bw,avx512vl")
namespace avx512 {

class Sums {
 public:
  Sums() : sums_(_mm512_set1_epi32(kernels::kHalfWeight)) {}
  void add(std::int32_t weight, const std::uint8_t* bytes) {
    const __m512i values = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
    sums_ = _mm512_add_epi32(sums_, _mm512_mullo_epi32(values, _mm512_set1_epi32(weight)));
  }
  __m128i pixels() const { return _mm512_cvtusepi32_epi8(_mm512_srai_epi32(sums_, kernels::kWeightBits)); }

 private:
  __m512i sums_;
};

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
