// Chooses at random how a step mixes the samples of its batch: by mixup (Zhang et al., ICLR 2018)
// or cutmix (Yun et al., ICCV 2019). As in torchvision's reference scripts, all samples of a step
// are mixed in the same way. Samples are mixed in pairs of neighbours
// (kernels/device/mix_parameters.h).
#pragma once

#include <cstdint>

#include "kernels/device/mix_parameters.h"

namespace convoy::data {

// The alphas of mixup and cutmix. A mixed sample keeps a fraction of its own pixels. The fraction
// is random, with the distribution Beta(alpha, alpha). If both alphas are set, each step uses one
// of the two kinds, at random.
struct MixSettings {
  float mixup = 0, cutmix = 0;  // alpha of each kind; 0: off
  bool any() const { return mixup > 0 || cutmix > 0; }
  void check() const;  // throws std::runtime_error that names the setting and its value
};

// Chooses how a step mixes its batch of images of the given height and width. The result depends
// only on the arguments, so it is the same on all ranks. `step` counts within its epoch. If both
// alphas are 0, nothing is mixed.
kernels::MixParameters draw_mix(const MixSettings& settings, std::uint64_t seed, std::int64_t epoch,
                                std::int64_t step, std::int64_t height, std::int64_t width);

}  // namespace convoy::data
