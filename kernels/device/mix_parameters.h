// Says how each sample of a batch is mixed with another one in a step, by mixup (Zhang et al., ICLR
// 2018) or cutmix (Yun et al., ICCV 2019). Plain data, which kernels read from an i32 tensor of
// kMixWords elements.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/device/philox.h"

namespace convoy::kernels {

// Each sample has a partner, mix_partner(). Outside the rectangle, a pixel becomes pixel_share
// times itself plus (1 - pixel_share) times the partner's pixel. Inside the rectangle, the
// partner's pixel replaces it. The sample's loss is label_share times the loss for its own label
// plus (1 - label_share) times the loss for the partner's label. The default mixes nothing.
struct MixParameters {
  float pixel_share = 1, label_share = 1;
  std::int32_t y = 0, x = 0, height = 0, width = 0;
  bool operator==(const MixParameters&) const = default;
};
static_assert(std::is_trivially_copyable_v<MixParameters>);
inline constexpr int kMixWords = sizeof(MixParameters) / sizeof(std::int32_t);

// The samples of a batch are mixed in pairs: 0 and 1, 2 and 3, and so on. If a batch is divided
// into parts of whole pairs, each sample keeps its partner.
inline constexpr int kMixedTogether = 2;

// Returns the partner of a valid sample: the other sample of its pair. The last sample of an odd
// number has no other and is its own partner, so mixing changes it by a rounding at most.
CONVOY_HOST_DEVICE constexpr std::int32_t mix_partner(std::int32_t sample, std::int32_t valid) {
  const std::int32_t other = sample ^ 1;
  return other < valid ? other : sample;
}

}  // namespace convoy::kernels
