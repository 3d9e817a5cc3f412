// Parallel loops for cpu.cpp files, and a macro that compiles functions for several sets of vector
// instructions.
#pragma once

#include <algorithm>
#include <cstdint>

// Compiles a function for AVX-512, for AVX2 and for the baseline. The dynamic linker picks the
// version that suits the processor. Builds with sanitizers have only the baseline, because the
// linker picks before the sanitizers are initialised.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define CONVOY_VECTORISED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CONVOY_VECTORISED
#endif

namespace convoy::kernels {

// Calls body(i) for i in [0, count) in parallel. Use it for few, large pieces of work.
template <typename Body>
void parallel_for(std::int64_t count, const Body& body) {
#pragma omp parallel for schedule(static) if (count > 1)
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

// Calls body(begin, end) for ranges of [0, count) in parallel. The ranges do not depend on the
// number of threads.
template <typename Body>
void parallel_pieces(std::int64_t count, std::int64_t piece, const Body& body) {
  parallel_for((count + piece - 1) / piece,
               [&](std::int64_t i) { body(i * piece, std::min(count, (i + 1) * piece)); });
}

// The number of elements in a range of an element-wise loop: enough to make the cost of starting a
// range negligible, and few enough for the cache.
inline constexpr std::int64_t kPiece = 16 * 1024;

}  // namespace convoy::kernels
