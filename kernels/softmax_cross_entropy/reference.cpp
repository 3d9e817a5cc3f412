// Softmax cross-entropy in plain loops.
#include <algorithm>
#include <cmath>

#include "kernels/device/host_kernel.h"
#include "kernels/softmax_cross_entropy/row_target.h"
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

namespace convoy::kernels::reference {
namespace {

// Counts the classes that rank before the label: those with a larger logit, those with an equal
// logit and a lower index, and those with a NaN. If the label's own logit is NaN, all classes rank
// before it.
std::int64_t rank_of(const float* logits, std::int64_t classes, std::int64_t label) {
  std::int64_t before = 0;
  for (std::int64_t j = 0; j < classes; ++j)
    if (!(logits[j] < logits[label]) && !(logits[j] == logits[label] && j >= label)) ++before;
  return before;
}

// Writes the row's probabilities and returns its loss, which has no meaning if the row has no
// label.
double softmax_row(const float* logits, float* probabilities, std::int64_t classes, const RowTarget& label,
                   double smoothing) {
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0, loss = 0;
  for (std::int64_t j = 0; j < classes; ++j) sum += std::exp(logits[j] - largest);
  for (std::int64_t j = 0; j < classes; ++j) {
    const double log_probability = logits[j] - largest - std::log(sum);
    const double target = (1 - smoothing) * label.on(j) + smoothing / double(classes);
    if (target != 0) loss -= target * log_probability;
    probabilities[j] = static_cast<float>(std::exp(log_probability));
  }
  return loss;
}

}  // namespace

Kernel softmax_cross_entropy_forward(const LossProblem& problem, KernelRequest& request) {
  const std::int64_t samples = request.inputs[0].shape[0], classes = request.inputs[0].shape[1];
  return host_kernel([=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const auto* mix = mix_of(operands, forward_inputs(problem));
    double metrics[kLossMetrics] = {};
    for (std::int64_t n = 0; n < samples; ++n) {
      const float* logits = operands.in(0) + n * classes;
      const RowTarget label = row_target(operands.in<std::int32_t>(1), n, mix, control);
      const double loss =
          softmax_row(logits, operands.out(0) + n * classes, classes, label, smoothing_of(problem, *control));
      if (label.own < 0) continue;
      const std::int64_t rank = rank_of(logits, classes, label.own);
      metrics[0] += loss;
      metrics[1] += rank < 1;
      metrics[2] += rank < 5;
      metrics[3] += 1;
    }
    const double* before = metrics_before(operands, problem.auxiliary);
    for (int k = 0; k < kLossMetrics; ++k)
      put_metric(operands.out<double>(1), before, k, metrics[k], problem.weight);
  });
}

Kernel softmax_cross_entropy_backward(const LossProblem& problem, KernelRequest& request) {
  const std::int64_t samples = request.inputs[0].shape[0], classes = request.inputs[0].shape[1];
  const auto body = [=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const auto* mix = mix_of(operands);
    const double smoothing = control->hyperparameters.label_smoothing;
    for (std::int64_t n = 0; n < samples; ++n)
      for (std::int64_t j = 0; j < classes; ++j) {
        const RowTarget label = row_target(operands.in<std::int32_t>(1), n, mix, control);
        const double target = (1 - smoothing) * label.on(j) + smoothing / double(classes);
        const double gradient =
            problem.weight * (operands.in(0)[n * classes + j] - target) / control->global_valid;
        operands.out(0)[n * classes + j] = label.own < 0 ? 0 : static_cast<float>(gradient);
      }
  };
  return host_kernel(body, {{0, 0}});
}

}  // namespace convoy::kernels::reference
