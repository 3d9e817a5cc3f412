// Softmax and cross-entropy against integer labels, with label smoothing (Szegedy et al., CVPR
// 2016). The target is (1 - s) on the label plus s / K on every class, where s is
// control->hyperparameters.label_smoothing, or 0 if the problem is `plain`.
//   softmax_cross_entropy_forward   {logits, labels, [mix], [metrics: auxiliary]}
//                                   -> {probabilities, metrics}
//   softmax_cross_entropy_backward  {probabilities, labels, [mix]} -> {dlogits}   may be in place
// logits, probabilities and dlogits are [N, K]. labels is i32 [N], -1 if there is no sample. The
// operand mix, i32 [kMixWords], exists if samples are mixed (kernels/device/mix_parameters.h). Then
// the target before smoothing is label_share on the sample's own label, and the rest is on its
// partner's label.
//
// metrics is f64 [kLossMetrics], with sums over this rank's samples: loss times weight, top-1 hits,
// top-5 hits, and the number of samples. An auxiliary output adds its loss to the metrics of the
// main output and copies the rest. Hits count for the sample's own label. If logits are equal, the
// lower class ranks first. A NaN is never a hit.
//
// dlogits = weight (probabilities - target) / control->global_valid, so that the sum over ranks is
// the gradient of the mean loss. A row without a label gets dlogits 0 and counts nowhere.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

inline constexpr int kLossMetrics = 4;

struct LossProblem {
  float weight = 1;
  bool auxiliary = false;
  bool plain = false;  // without label smoothing, as evaluations report the loss; used by forward
};

inline float smoothing_of(const LossProblem& problem, const StepControl& control) {
  return problem.plain ? 0 : control.hyperparameters.label_smoothing;
}

// Returns how many inputs forward has without the operand `mix`.
inline std::size_t forward_inputs(const LossProblem& problem) { return problem.auxiliary ? 3 : 2; }

Kernel softmax_cross_entropy_forward(Backend backend, const LossProblem& problem, KernelRequest& request);
Kernel softmax_cross_entropy_backward(Backend backend, const LossProblem& problem, KernelRequest& request);

// The makers of the backends. They expect requests that were checked.
CONVOY_MAKERS(softmax_cross_entropy_forward, LossProblem);
CONVOY_MAKERS(softmax_cross_entropy_backward, LossProblem);

}  // namespace convoy::kernels
