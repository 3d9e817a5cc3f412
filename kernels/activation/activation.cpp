#include "kernels/activation/activation.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace convoy::kernels {

void require_activation(const char* operation, const ActivationProblem& p) {
  // The condition is negated, so that a NaN, for which no comparison holds, is refused.
  if (p.kind == ActivationKind::clip && !(p.min < p.max))
    throw std::invalid_argument(
        fmt::format("{}: clip from {} to {}, expected the first to be less", operation, p.min, p.max));
  if (p.kind == ActivationKind::leaky_relu && !(p.slope >= 0))
    throw std::invalid_argument(
        fmt::format("{}: leaky_relu with slope {}, expected at least 0", operation, p.slope));
  if (p.kind == ActivationKind::hard_sigmoid && !(p.slope > 0))
    throw std::invalid_argument(
        fmt::format("{}: hard_sigmoid with slope {}, expected more than 0", operation, p.slope));
  if (p.kind == ActivationKind::affine && !(std::isfinite(p.slope) && std::isfinite(p.offset)))
    throw std::invalid_argument(
        fmt::format("{}: affine {} x + {}, expected finite numbers", operation, p.slope, p.offset));
}

}  // namespace convoy::kernels
