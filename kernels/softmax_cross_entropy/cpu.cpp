// Softmax cross-entropy on the host. Threads compute one row at a time and store its metrics in the
// workspace. The metrics are then added in the order of the rows, for any number of threads.
#include <algorithm>
#include <cmath>

#include "kernels/device/host_kernel.h"
#include "kernels/device/parallel.h"
#include "kernels/softmax_cross_entropy/row_target.h"
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

namespace convoy::kernels::cpu {
namespace {

// Counts the classes that rank before the label: those with a larger logit, those with an equal
// logit and a lower index, and those with a NaN. If the label's own logit is NaN, all classes rank
// before it.
std::int64_t rank_of(const float* logits, std::int64_t classes, std::int64_t label) {
  const float own = logits[label];
  std::int64_t before = 0;
  for (std::int64_t j = 0; j < classes; ++j)
    before += !(logits[j] < own) && !(logits[j] == own && j >= label);
  return before;
}

// Computes the probabilities of one row and, if it has a label, its metrics.
void forward_row(double smoothing, std::int64_t classes, const float* logits, const RowTarget& label,
                 float* probabilities, double* metrics) {
  const float largest = *std::max_element(logits, logits + classes);
  double sum = 0, sum_of_logits = 0;
  for (std::int64_t j = 0; j < classes; ++j) {
    probabilities[j] = std::exp(logits[j] - largest);
    sum += probabilities[j];
    sum_of_logits += logits[j] - largest;
  }
  const auto inverse = static_cast<float>(1 / sum);
  for (std::int64_t j = 0; j < classes; ++j) probabilities[j] *= inverse;
  std::fill_n(metrics, kLossMetrics, 0.0);
  if (label.own < 0) return;
  // The loss is minus the sum of target * log p, where log p = logit - largest - log(sum). The
  // elements of the target add up to one, so log(sum) is added once.
  double at_labels = logits[label.own] - largest;
  if (label.share != 1) at_labels += (1 - double(label.share)) * (logits[label.other] - logits[label.own]);
  metrics[0] = std::log(sum) - (1 - smoothing) * at_labels;
  if (smoothing != 0) metrics[0] -= smoothing / static_cast<double>(classes) * sum_of_logits;
  const std::int64_t rank = rank_of(logits, classes, label.own);
  metrics[1] = rank < 1;
  metrics[2] = rank < 5;
  metrics[3] = 1;
}

}  // namespace

Kernel softmax_cross_entropy_forward(const LossProblem& problem, KernelRequest& request) {
  const std::int64_t samples = request.inputs[0].shape[0], classes = request.inputs[0].shape[1];
  const auto body = [=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const double smoothing = smoothing_of(problem, *control);
    const auto* mix = mix_of(operands, forward_inputs(problem));
    auto* rows = operands.scratch<double>();
    parallel_for(samples, [&](std::int64_t n) {
      forward_row(smoothing, classes, operands.in(0) + n * classes,
                  row_target(operands.in<std::int32_t>(1), n, mix, control), operands.out(0) + n * classes,
                  rows + n * kLossMetrics);
    });
    double metrics[kLossMetrics] = {};
    for (std::int64_t i = 0; i < samples * kLossMetrics; ++i) metrics[i % kLossMetrics] += rows[i];
    const double* before = metrics_before(operands, problem.auxiliary);
    for (int k = 0; k < kLossMetrics; ++k)
      put_metric(operands.out<double>(1), before, k, metrics[k], problem.weight);
  };
  return host_kernel(body, {}, static_cast<std::size_t>(samples) * kLossMetrics * sizeof(double));
}

Kernel softmax_cross_entropy_backward(const LossProblem& problem, KernelRequest& request) {
  const std::int64_t samples = request.inputs[0].shape[0], classes = request.inputs[0].shape[1];
  const auto body = [=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const auto* mix = mix_of(operands);
    const float scale = problem.weight / static_cast<float>(control->global_valid);
    const float smoothing = control->hyperparameters.label_smoothing;
    const float everywhere = smoothing / static_cast<float>(classes);
    parallel_for(samples, [&](std::int64_t n) {
      const RowTarget label = row_target(operands.in<std::int32_t>(1), n, mix, control);
      const float* probabilities = operands.in(0) + n * classes;
      float* dlogits = operands.out(0) + n * classes;
      if (label.own < 0) {
        std::fill_n(dlogits, classes, 0.0f);
        return;
      }
      for (std::int64_t j = 0; j < classes; ++j) {
        const float target = everywhere + (1 - smoothing) * label.on(j);
        dlogits[j] = (probabilities[j] - target) * scale;
      }
    });
  };
  return host_kernel(body, {{0, 0}});
}

}  // namespace convoy::kernels::cpu
