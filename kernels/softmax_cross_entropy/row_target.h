// Computes the target of a row, for the loss kernels of all backends.
#pragma once

#include "kernels/device/host_kernel.h"
#include "kernels/device/mix_parameters.h"

namespace convoy::kernels {

// Returns the third input, or null if samples are not mixed.
inline const MixParameters* mix_of(const BoundOperands& operands) {
  return operands.inputs.size() > 2 ? operands.in<MixParameters>(2) : nullptr;
}

// The labels of one row: `share` of the target is on its own label, the rest on the other. Without
// mixing both are its own.
struct RowTarget {
  std::int32_t own, other;  // `own` is -1 if there is no sample
  float share;
  // Returns the share of the target on class j before smoothing; exactly 1 on the label of a row
  // that is not mixed.
  CONVOY_HOST_DEVICE float on(std::int64_t j) const {
    return (j == own ? share : 0.0f) + (j == other ? 1 - share : 0.0f);
  }
};
// `mix` is the result of mix_of().
CONVOY_HOST_DEVICE inline RowTarget row_target(const std::int32_t* labels, std::int64_t row,
                                               const MixParameters* mix, const StepControl* control) {
  const std::int32_t own = labels[row];
  if (mix == nullptr || own < 0) return {own, own, 1};
  return {own, labels[mix_partner(static_cast<std::int32_t>(row), control->valid)], mix->label_share};
}

}  // namespace convoy::kernels
