// The random numbers for one sample in one epoch, from a counter-based generator (philox.h). They
// depend only on seed, epoch and sample. Each kind of augmentation uses its own random numbers, so
// that switching one kind on does not change the numbers of another.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/device/philox.h"

namespace convoy::data {

// A random resized crop tries up to kCropTries random windows, and random erasing up to kEraseTries
// random rectangles, until one fits.
inline constexpr int kCropTries = 10, kEraseTries = 10;
// The generator gives random words in numbered blocks of four. Block 0 serves the position of a
// random crop, mirroring and the decision whether to erase. The constants below are the first block
// of each other purpose. Each try uses one block.
inline constexpr int kResizedCropBlock = 1;
inline constexpr int kCutoutBlock = kResizedCropBlock + kCropTries;
inline constexpr int kErasingBlock = kCutoutBlock + 1;
// Colour jitter uses this block and the next one.
inline constexpr int kJitterBlock = kErasingBlock + kEraseTries;
inline constexpr int kAutoAugmentBlock = kJitterBlock + 2;  // one block per operation

class SampleDraws {
 public:
  SampleDraws(std::uint64_t seed, std::int64_t epoch, std::int64_t sample)
      : key_(seed ^ kPurpose),
        sample_(static_cast<std::uint64_t>(sample)),
        epoch_(static_cast<std::uint64_t>(epoch)) {}
  kernels::Philox4 block(int b) const {
    return kernels::philox(key_, sample_, epoch_ << 8 | static_cast<std::uint64_t>(b));
  }

 private:
  // XORed into the seed, so that these random numbers differ from those for other purposes.
  static constexpr std::uint64_t kPurpose = 0x6175676D656E74ull << 8;
  std::uint64_t key_, sample_, epoch_;
};

// Returns a uniform number in 0 … count - 1. The probabilities of the numbers differ by a factor of
// at most about 1 + count / 2^32.
inline std::int32_t uniform_below(std::uint32_t word, std::int64_t count) {
  return static_cast<std::int32_t>(static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(count) >>
                                   32);
}
inline double uniform_between(std::uint32_t word, double low, double high) {
  return low + static_cast<double>(kernels::uniform(word)) * (high - low);
}
inline double log_uniform_between(std::uint32_t word, double low, double high) {
  return std::exp(uniform_between(word, std::log(low), std::log(high)));
}

}  // namespace convoy::data
