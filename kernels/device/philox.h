// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011). The same key and counter give the same four words on every machine and
// device. So random numbers do not depend on where, and in which order, samples are processed. For
// host and device code.
#pragma once

#include <array>
#include <cstdint>

#ifdef __CUDACC__
#define CONVOY_HOST_DEVICE __host__ __device__
#else
#define CONVOY_HOST_DEVICE
#endif

namespace convoy::kernels {

struct Philox4 {
  std::uint32_t word[4];
};

// Returns four random words. `key` selects a stream of numbers; callers compute it from the seed
// and the purpose of the numbers. `low` and `high` are the counter, which is the position in this
// stream.
CONVOY_HOST_DEVICE inline Philox4 philox(std::uint64_t key, std::uint64_t low, std::uint64_t high = 0) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  std::uint32_t c0 = static_cast<std::uint32_t>(low), c1 = static_cast<std::uint32_t>(low >> 32);
  std::uint32_t c2 = static_cast<std::uint32_t>(high), c3 = static_cast<std::uint32_t>(high >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0, p1 = std::uint64_t{0xCD9E8D57u} * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Converts a random word to a uniform number in [0, 1), from its upper 24 bits.
CONVOY_HOST_DEVICE inline float uniform(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

}  // namespace convoy::kernels
