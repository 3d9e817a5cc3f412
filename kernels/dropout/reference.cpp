// Drops elements in plain loops.
#include "kernels/device/host_kernel.h"
#include "kernels/dropout/dropout.h"

namespace convoy::kernels::reference {
namespace {

// Makes the kernel of dropout_forward or dropout_backward; both multiply by the same mask.
Kernel masked_scale(const char* operation, const DropoutProblem& problem, KernelRequest& request) {
  require_counts(operation, request, 1, 1);
  require_row_major(operation, request);
  const Shape shape = request.inputs[0].shape;
  require_shape(operation, "the output", request.outputs[0], shape);
  const auto body = [=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const std::uint64_t key = dropout_key(control->seed, problem.layer);
    const std::int64_t elements = shape.elements() / shape[0];
    for (std::int64_t n = 0; n < shape[0]; ++n)
      for (std::int64_t i = 0; i < elements; ++i) {
        // With whole_samples, the random word of element 0 decides for the whole sample.
        const std::int64_t drawn = problem.whole_samples ? 0 : i;
        const Philox4 words =
            dropout_words(key, control->step, control->first_sample + static_cast<std::uint64_t>(n),
                          static_cast<std::uint32_t>(drawn / 4));
        const bool keep = uniform(words.word[drawn % 4]) >= problem.rate;
        const std::int64_t at = n * elements + i;
        operands.out(0)[at] = keep ? operands.in(0)[at] * (1 / (1 - problem.rate)) : 0;
      }
  };
  return host_kernel(body, {{0, 0}});
}

}  // namespace

Kernel dropout_forward(const DropoutProblem& problem, KernelRequest& request) {
  return masked_scale("dropout_forward", problem, request);
}
Kernel dropout_backward(const DropoutProblem& problem, KernelRequest& request) {
  return masked_scale("dropout_backward", problem, request);
}

}  // namespace convoy::kernels::reference
