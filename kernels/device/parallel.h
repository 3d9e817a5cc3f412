// Loops over all cores in cpu.cpp files, and code for the vector units that the machine turns out to have.
#pragma once

#include <algorithm>
#include <cstdint>

// Compiles a function for AVX-512, for AVX2 and for the baseline; the loader picks one. Sanitizers instrument
// the picking before they are ready for it, so they get the baseline alone.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define CONVOY_VECTORISED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CONVOY_VECTORISED
#endif

namespace convoy::kernels {

// body(i) for i in [0, count), in parallel; for a few large pieces of work.
template <typename Body>
void parallel_for(std::int64_t count, const Body& body) {
#pragma omp parallel for schedule(static) if (count > 1)
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

// body(begin, end) over pieces of [0, count), in parallel. The pieces do not depend on the number of threads.
template <typename Body>
void parallel_pieces(std::int64_t count, std::int64_t piece, const Body& body) {
  parallel_for((count + piece - 1) / piece,
               [&](std::int64_t i) { body(i * piece, std::min(count, (i + 1) * piece)); });
}

// A piece of an element-wise loop: large enough to hide the loop's start, small enough for the cache.
inline constexpr std::int64_t kPiece = 16 * 1024;

}  // namespace convoy::kernels
