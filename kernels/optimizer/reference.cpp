// Updates parameters in plain loops.
#include <cmath>

#include "kernels/device/host_kernel.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::kernels::reference {
namespace {

// The elements of one segment (the range of one parameter tensor) in each buffer, and the constants
// of its update in this step.
struct Slice {
  float *parameters, *first, *second;  // first, second: the optimizer's states, or null
  const float* gradients;
  std::int64_t count;
  double rate, scale, decay;
};

void sgd(const Hyperparameters& numbers, const Slice& slice) {
  for (std::int64_t i = 0; i < slice.count; ++i) {
    const double g = slice.scale * slice.gradients[i] + slice.decay * slice.parameters[i];
    double update = g;
    if (slice.first != nullptr) {
      const double velocity = numbers.momentum * double(slice.first[i]) + g;
      slice.first[i] = static_cast<float>(velocity);
      update = numbers.nesterov != 0 ? g + numbers.momentum * velocity : velocity;
    }
    slice.parameters[i] = static_cast<float>(slice.parameters[i] - slice.rate * update);
  }
}

void lars(const Hyperparameters& numbers, const Slice& slice, bool adapt) {
  double w2 = 0, g2 = 0;
  for (std::int64_t i = 0; i < slice.count; ++i) {
    w2 += double(slice.parameters[i]) * slice.parameters[i];
    g2 += slice.scale * slice.gradients[i] * slice.scale * slice.gradients[i];
  }
  const double trust = adapt && w2 > 0 && g2 > 0 ? numbers.trust_coefficient * std::sqrt(w2) /
                                                       (std::sqrt(g2) + slice.decay * std::sqrt(w2))
                                                 : 1;
  for (std::int64_t i = 0; i < slice.count; ++i) {
    const double g = slice.scale * slice.gradients[i] + slice.decay * slice.parameters[i];
    const double velocity = numbers.momentum * double(slice.first[i]) + slice.rate * trust * g;
    slice.first[i] = static_cast<float>(velocity);
    slice.parameters[i] = static_cast<float>(slice.parameters[i] - velocity);
  }
}

void move_average(float* average, const float* values, std::int64_t count, const StepControl& control) {
  const double rate = average_rate(control);
  for (std::int64_t i = 0; i < count; ++i)
    average[i] =
        rate == 1 ? values[i] : static_cast<float>(average[i] + rate * (double(values[i]) - average[i]));
}

void adamw(const Hyperparameters& numbers, const Slice& slice, std::uint64_t step) {
  const double beta1 = numbers.beta1, beta2 = numbers.beta2, t = double(step) + 1;
  for (std::int64_t i = 0; i < slice.count; ++i) {
    const double g = slice.scale * slice.gradients[i];
    const double m = beta1 * slice.first[i] + (1 - beta1) * g;
    const double v = beta2 * slice.second[i] + (1 - beta2) * g * g;
    slice.first[i] = static_cast<float>(m);
    slice.second[i] = static_cast<float>(v);
    const double corrected = m / (1 - std::pow(beta1, t));
    const double root = std::sqrt(v / (1 - std::pow(beta2, t)));
    const double decayed = slice.parameters[i] * (1 - slice.rate * slice.decay);
    slice.parameters[i] = static_cast<float>(decayed - slice.rate * corrected / (root + numbers.epsilon));
  }
}

}  // namespace

Kernel optimizer_update(const OptimizerProblem& problem, KernelRequest& request) {
  const int states = optimizer_states(problem), inputs = optimizer_inputs(problem);
  require_counts("optimizer_update", request, inputs, 0);
  require_row_major("optimizer_update", request);
  for (const TensorDesc& input : request.inputs)
    require_shape("optimizer_update", "a buffer", input, request.inputs[0].shape);
  return host_kernel([=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const Hyperparameters& numbers = control->hyperparameters;
    for (const ParameterSegment& segment : problem.segments) {
      const Slice slice{operands.inout(0) + segment.offset,
                        states > 0 ? operands.inout(2) + segment.offset : nullptr,
                        states > 1 ? operands.inout(3) + segment.offset : nullptr,
                        operands.in(1) + segment.offset,
                        segment.count,
                        control->learning_rate * double{segment.rate},
                        control->gradient_scale,
                        segment.decay * numbers.weight_decay};
      if (problem.kind == OptimizerKind::sgd) sgd(numbers, slice);
      if (problem.kind == OptimizerKind::lars) lars(numbers, slice, segment.adapt);
      if (problem.kind == OptimizerKind::adamw) adamw(numbers, slice, control->step);
      if (problem.averages)
        move_average(operands.inout(inputs - 1) + segment.offset, slice.parameters, segment.count, *control);
    }
  });
}

Kernel squared_norm(const SquaredNormProblem&, KernelRequest& request) {
  require_counts("squared_norm", request, 1, 1);
  require_row_major("squared_norm", request);
  require_shape("squared_norm", "the sum", request.outputs[0], {1});
  require_dtype("squared_norm", "the sum", request.outputs[0], DType::f64);
  return host_kernel([count = request.inputs[0].shape.elements()](const BoundOperands& operands) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += double(operands.in(0)[i]) * operands.in(0)[i];
    *operands.out<double>(0) = sum;
  });
}

Kernel moving_average(const MovingAverageProblem&, KernelRequest& request) {
  const std::int64_t count = check_moving_average(request);
  return host_kernel([=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    move_average(operands.inout(1), operands.in(0), count, *control);
  });
}

Kernel clip_scale(const ClipProblem&, KernelRequest& request) {
  check_clip_scale(request);
  return host_kernel([](const BoundOperands& operands) {
    const double ratio =
        operands.control()->hyperparameters.largest_norm / std::sqrt(*operands.in<double>(0));
    *operands.out(0) = ratio < 1 ? static_cast<float>(ratio) : 1.0f;
  });
}

}  // namespace convoy::kernels::reference
