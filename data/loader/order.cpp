#include "data/loader/order.h"

#include <algorithm>

#include "kernels/device/philox.h"

namespace convoy::data {
namespace {

// XORed into the seed, so that these random numbers differ from those for other purposes.
constexpr std::uint64_t kPurpose = 0x6F72646572ull << 16;

// The last step of MurmurHash3 (Appleby, public domain): every input bit affects every output bit.
std::uint32_t mix(std::uint32_t value) {
  value ^= value >> 16;
  value *= 0x85EBCA6Bu;
  value ^= value >> 13;
  value *= 0xC2B2AE35u;
  return value ^ value >> 16;
}

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch)
    : size_(size), half_bits_(1), keys_{} {
  while (half_bits_ < 31 && (std::int64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
  for (int round = 0; round < kRounds; round += 4) {
    const auto block = kernels::philox(seed ^ kPurpose, static_cast<std::uint64_t>(round),
                                       static_cast<std::uint64_t>(epoch));
    std::copy(std::begin(block.word), std::end(block.word), keys_.begin() + round);
  }
}

std::int64_t Permutation::operator[](std::int64_t position) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  auto value = static_cast<std::uint64_t>(position);
  do {
    std::uint64_t left = value >> half_bits_, right = value & mask;
    for (const std::uint32_t key : keys_) {
      const std::uint64_t next = left ^ (mix(static_cast<std::uint32_t>(right) * 0x9E3779B1u + key) & mask);
      left = right;
      right = next;
    }
    value = left << half_bits_ | right;
  } while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

SampleRange range_of_rank(std::int64_t samples, int ranks, int rank, int group) {
  const std::int64_t groups = (samples + group - 1) / group;
  const std::int64_t each = groups / ranks, longer = groups % ranks;
  const auto begin = [&](std::int64_t before) {
    return std::min(samples, group * (before * each + std::min(before, longer)));
  };
  return {begin(rank), begin(rank + 1) - begin(rank)};
}

}  // namespace convoy::data
