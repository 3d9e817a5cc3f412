// Slices and permutations of channels. Splitting into all parts is concat_backward, and its
// gradient concat_forward (kernels/concat).
//   slice_forward    {x} -> {y}     y has channels begin to begin + its own number of x
//   slice_backward   {dy} -> {dx}   dx is zero in the other channels
//   channel_shuffle  {x} -> {y}     y's channel j groups + i is x's channel i (C / groups) + j
//                                   (Zhang et al., CVPR 2018); its gradient is the shuffle in
//                                   C / groups groups
// All tensors [N, C, H, W] or [N, C] of one layout.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct SliceProblem {
  std::int64_t begin = 0;
};
struct ShuffleProblem {
  int groups = 2;  // divides the channels
};

CONVOY_KERNEL(slice_forward, SliceProblem);
CONVOY_KERNEL(slice_backward, SliceProblem);
CONVOY_KERNEL(channel_shuffle, ShuffleProblem);

// The channel of the input that a channel of the output copies.
struct ChannelMap {
  std::int64_t in, out;      // channels
  std::int64_t first, last;  // output channels from first to before last have one, the others are zero
  std::int64_t shift;        // of a slice
  std::int64_t groups;       // of a shuffle, else 1

  std::int64_t source(std::int64_t c) const {
    if (c < first || c >= last) return -1;
    return groups > 1 ? c % groups * (in / groups) + c / groups : c + shift;
  }
};
// Check the request and throw std::invalid_argument if the channels do not fit.
ChannelMap map_of_slice(const char* operation, bool backward, const SliceProblem& problem,
                        const KernelRequest& request);
ChannelMap map_of_shuffle(const ShuffleProblem& problem, const KernelRequest& request);

}  // namespace convoy::kernels
