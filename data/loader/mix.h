// Draws how a step's batch is mixed: mixup (Zhang et al., ICLR 2018) or cutmix (Yun et al., ICCV
// 2019), drawn once a step as torchvision's references do it.
#pragma once

#include <cstdint>

#include "kernels/device/mix_parameters.h"

namespace convoy::data {

// The shares of the two samples are Beta(alpha, alpha) distributed; 0 leaves that kind of mixing
// out. With both, each step draws one of them.
struct MixSettings {
  float mixup = 0, cutmix = 0;  // alpha
  bool any() const { return mixup > 0 || cutmix > 0; }
  void check() const;  // throws std::runtime_error, naming the setting and its value
};

// Depends on the settings, (seed, epoch, step) and the extents of the images alone; step counts
// within its epoch. The same on every rank. Without settings it mixes nothing.
kernels::MixParameters draw_mix(const MixSettings& settings, std::uint64_t seed, std::int64_t epoch,
                                std::int64_t step, std::int64_t height, std::int64_t width);

}  // namespace convoy::data
