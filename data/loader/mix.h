// Draws how a step mixes its batch, once per step as in torchvision's reference scripts: by mixup
// (Zhang et al., ICLR 2018) or cutmix (Yun et al., ICCV 2019). The partner of a sample is the next
// sample of the batch (kernels/device/mix_parameters.h).
#pragma once

#include <cstdint>

#include "kernels/device/mix_parameters.h"

namespace convoy::data {

// The alphas of mixup and cutmix. The share of a sample's own pixels in the mixed sample has the
// distribution Beta(alpha, alpha). If both alphas are set, each step draws one of the two kinds.
struct MixSettings {
  float mixup = 0, cutmix = 0;  // alpha of each kind; 0: off
  bool any() const { return mixup > 0 || cutmix > 0; }
  void check() const;  // throws std::runtime_error that names the setting and its value
};

// Draws how a step mixes its batch of images with these extents. The result depends on the
// arguments alone, so all ranks agree. `step` counts within its epoch. If no kind is set, nothing
// is mixed.
kernels::MixParameters draw_mix(const MixSettings& settings, std::uint64_t seed, std::int64_t epoch,
                                std::int64_t step, std::int64_t height, std::int64_t width);

}  // namespace convoy::data
