// Slices and permutations of channels. To split a tensor into parts without remainder, use
// concat_backward, whose gradient is concat_forward (kernels/concat).
//   slice_forward    {x} -> {y}     y has the channels of x from `begin` on
//   slice_backward   {dy} -> {dx}   dx is zero in the channels that forward left out
//   channel_shuffle  {x} -> {y}     channel j groups + i of y is channel i (C / groups) + j of x
//                                   (Zhang et al., CVPR 2018)
// The gradient of channel_shuffle is the shuffle with C / groups groups. All tensors are [N, C, H,
// W] or [N, C], of one layout.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct SliceProblem {
  std::int64_t begin = 0;
};
struct ShuffleProblem {
  int groups = 2;  // a divisor of the number of channels
};

CONVOY_KERNEL(slice_forward, SliceProblem);
CONVOY_KERNEL(slice_backward, SliceProblem);
CONVOY_KERNEL(channel_shuffle, ShuffleProblem);

// For each channel of the output, says which channel of the input it copies.
struct ChannelMap {
  std::int64_t in, out;      // how many channels the input and the output have
  std::int64_t first, last;  // output channels in [first, last) are copied; the others are zero
  std::int64_t shift;        // in a slice: the input channel minus the output channel
  std::int64_t groups;       // the number of groups of a shuffle; 1 for a slice

  std::int64_t source(std::int64_t c) const {
    if (c < first || c >= last) return -1;
    return groups > 1 ? c % groups * (in / groups) + c / groups : c + shift;
  }
};
// Both functions return the ChannelMap of a request. They throw std::invalid_argument if the
// channels of its operands do not fit.
ChannelMap map_of_slice(const char* operation, bool backward, const SliceProblem& problem,
                        const KernelRequest& request);
ChannelMap map_of_shuffle(const ShuffleProblem& problem, const KernelRequest& request);

}  // namespace convoy::kernels
