// The order of the samples in an epoch, which does not depend on the number of ranks, and the slice
// of each rank.
#pragma once

#include <array>
#include <cstdint>

namespace convoy::data {

// A pseudo-random permutation of 0 … size - 1 for one epoch, computed one position at a time: a
// Feistel network over the smallest sufficient power of four, walked along its cycle until the
// value is in range (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). It
// takes no memory and starts anywhere, so that ranks and resumed runs agree without exchanging or
// replaying anything.
class Permutation {
 public:
  Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);
  std::int64_t operator[](std::int64_t position) const;

 private:
  static constexpr int kRounds = 8;
  std::int64_t size_;
  int half_bits_;
  std::array<std::uint32_t, kRounds> keys_;
};

struct Slice {
  std::int64_t first = 0, count = 0;
  bool operator==(const Slice&) const = default;
};

// Returns the part of `samples` samples that rank `rank` gets. Parts are consecutive; the first
// samples % ranks ranks get one sample more.
Slice slice_of(std::int64_t samples, int ranks, int rank);

}  // namespace convoy::data
