// Inverted dropout (Srivastava et al., JMLR 2014): keeps an element with probability 1 - rate, and
// divides kept elements by 1 - rate. With whole_samples this is stochastic depth (Huang et al.,
// ECCV 2016): a sample is kept or dropped as a whole.
//   dropout_forward   {x} -> {y}      y may be x
//   dropout_backward  {dy} -> {dx}    dx may be dy
// Tensors are [N, ...], of any layout. The mask depends only on the seed, the layer, the step, the
// sample's position in the global batch and the element's row-major index. So the mask is the same
// for every layout and number of ranks, and backward can compute it again.
#pragma once

#include "kernels/device/kernel.h"
#include "kernels/device/philox.h"

namespace convoy::kernels {

struct DropoutProblem {
  float rate = 0.5f;        // the probability of dropping, in [0, 1)
  std::uint32_t layer = 0;  // a different number for every dropout layer of a network
  bool whole_samples = false;
};

// Returns the key of a layer's masks. The hash (the finaliser of SplitMix64) gives unrelated keys
// to neighbouring layers and seeds.
CONVOY_HOST_DEVICE inline std::uint64_t dropout_key(std::uint64_t seed, std::uint32_t layer) {
  std::uint64_t key = seed + 0x9E3779B97F4A7C15ull * (layer + 1ull);
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ull;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBull;
  return key ^ (key >> 31);
}

// Returns four random words, for the elements 4 * group to 4 * group + 3 of a sample. An element is
// kept if uniform(its word) >= rate.
CONVOY_HOST_DEVICE inline Philox4 dropout_words(std::uint64_t key, std::uint64_t step, std::uint64_t sample,
                                                std::uint32_t group) {
  return philox(key, step, sample << 32 | group);
}

// Returns the factor of a sample that is kept or dropped as a whole: 0, or 1 / (1 - rate).
CONVOY_HOST_DEVICE inline float sample_factor(std::uint64_t key, std::uint64_t step, std::uint64_t sample,
                                              float rate) {
  return uniform(dropout_words(key, step, sample, 0).word[0]) >= rate ? 1 / (1 - rate) : 0.0f;
}

CONVOY_KERNEL(dropout_forward, DropoutProblem);
CONVOY_KERNEL(dropout_backward, DropoutProblem);

}  // namespace convoy::kernels
