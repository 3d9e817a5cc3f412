#include "kernels/batch_norm/batch_norm.h"

#include <fmt/format.h>

#include <stdexcept>

namespace convoy::kernels {

void require_batch_norm_flags(const char* operation, const BatchNormProblem& problem) {
  if ((problem.second_gradient || (problem.relu && problem.residual)) && !problem.write_gradient)
    throw std::invalid_argument(fmt::format(
        "{}: write_gradient is needed with second_gradient or with relu and residual", operation));
  if (problem.relu_mask && !(problem.relu && problem.residual))
    throw std::invalid_argument(fmt::format("{}: relu_mask goes with relu and residual", operation));
  require_batch_norm_activation(operation, problem);
}

void require_batch_norm_activation(const char* operation, const BatchNormProblem& problem) {
  if (!problem.activation) return;
  if (problem.relu || problem.residual)
    throw std::invalid_argument(
        fmt::format("{}: found an activation with relu or a residual, expected it alone", operation));
  require_activation(operation, *problem.activation);
}

}  // namespace convoy::kernels
