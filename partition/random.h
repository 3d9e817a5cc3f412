// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), a small random number generator with a seed. Unlike
// the standard library's distributions, it gives the same numbers on all platforms.
#pragma once

#include <cstdint>

namespace convoy::partition {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Returns a number from 0 to bound - 1. The remainder makes the numbers slightly unequal in
  // probability, by less than 2^-40 for the bounds used here.
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(bound));
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace convoy::partition
