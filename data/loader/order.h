// The order of the samples in an epoch, which is the same for any number of ranks, and the range of
// samples that each rank gets.
#pragma once

#include <array>
#include <cstdint>

namespace convoy::data {

// A pseudo-random permutation of 0 … size - 1 for one epoch. A Feistel network permutes the numbers
// below a power of four that is at least `size`. It is applied to a position repeatedly, until the
// result is below `size` (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
// Each position is computed on its own, without a table. So ranks and resumed runs agree without
// communication or replay.
class Permutation {
 public:
  Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);
  // Returns the number at `position`, which must be in [0, size).
  std::int64_t operator[](std::int64_t position) const;

 private:
  static constexpr int kRounds = 8;
  std::int64_t size_;
  int half_bits_;
  std::array<std::uint32_t, kRounds> keys_;
};

// Consecutive samples: `count` samples from number `first` on, counted from 0.
struct SampleRange {
  std::int64_t first = 0, count = 0;
  bool operator==(const SampleRange&) const = default;
};

// Returns the range of `samples` samples that rank `rank` gets. `ranks` and `group` must be at
// least 1, and `rank` from 0 to ranks - 1. The ranges of the ranks are consecutive. A rank gets
// whole groups of `group` samples, only the last group may be smaller. The first (number of groups)
// % ranks ranks get one group more than the others.
SampleRange range_of_rank(std::int64_t samples, int ranks, int rank, int group = 1);

}  // namespace convoy::data
