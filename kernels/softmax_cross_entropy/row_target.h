// Computes the target distribution of a row, for the loss kernels of all backends.
#pragma once

#include "kernels/device/host_kernel.h"
#include "kernels/device/mix_parameters.h"

namespace convoy::kernels {

// Returns the operand `mix`, or null if the request has none because samples are not mixed.
// `without` is the number of inputs without `mix`.
inline const MixParameters* mix_of(const BoundOperands& operands, std::size_t without = 2) {
  return operands.inputs.size() > without ? operands.in<MixParameters>(2) : nullptr;
}

// Returns the metrics of the main output if this output is auxiliary, else null. An auxiliary
// output is a second classifier of a network. It adds its loss to the metrics of the main output.
inline const double* metrics_before(const BoundOperands& operands, bool auxiliary) {
  return auxiliary ? operands.in<double>(operands.inputs.size() - 1) : nullptr;
}

// Writes metric k of an output (softmax_cross_entropy.h). An auxiliary output has `before`, the
// metrics of the main output: it adds its weighted loss to metric 0 and copies the other metrics.
CONVOY_HOST_DEVICE inline void put_metric(double* metrics, const double* before, int k, double sum,
                                          float weight) {
  if (k == 0)
    metrics[0] = (before == nullptr ? 0.0 : before[0]) + weight * sum;
  else
    metrics[k] = before == nullptr ? sum : before[k];
}

// The target of one row, before label smoothing. The fraction `share` of the target is on `own`,
// the label of the sample. The rest is on `other`, the label of its partner (mix_parameters.h).
// Without mixing, `other` is `own`.
struct RowTarget {
  std::int32_t own, other;  // `own` is -1 if there is no sample
  float share;
  // Returns the fraction of the target on class j, before smoothing. It is exactly 1 on the label
  // of a row if `mix` is null, and 1 within a rounding if the row is its own partner.
  CONVOY_HOST_DEVICE float on(std::int64_t j) const {
    return (j == own ? share : 0.0f) + (j == other ? 1 - share : 0.0f);
  }
};
// Returns the target of a row. `mix` is the result of mix_of().
CONVOY_HOST_DEVICE inline RowTarget row_target(const std::int32_t* labels, std::int64_t row,
                                               const MixParameters* mix, const StepControl* control) {
  const std::int32_t own = labels[row];
  if (mix == nullptr || own < 0) return {own, own, 1};
  return {own, labels[mix_partner(static_cast<std::int32_t>(row), control->valid)], mix->label_share};
}

}  // namespace convoy::kernels
