// Chooses the vector instructions for loops over pixels on the host. All levels give the same bits.
#pragma once

#include <cstdint>

// Only GCC can compile parts of a file for other instructions by means of pragmas.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CONVOY_VECTOR_LEVELS 1
#else
#define CONVOY_VECTOR_LEVELS 0
#endif

namespace convoy::data {

enum class VectorLevel : std::uint8_t { portable, avx2, avx512 };

// Returns the best level that this build contains and this machine can run.
inline VectorLevel best_vector_level() {
#if CONVOY_VECTOR_LEVELS
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) return VectorLevel::avx512;
  if (__builtin_cpu_supports("avx2")) return VectorLevel::avx2;
#endif
  return VectorLevel::portable;
}

}  // namespace convoy::data
