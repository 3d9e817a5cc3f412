#include "app/training/divergence.h"

#include <fmt/core.h>

#include <cmath>

namespace convoy::app {

void check_loss(double loss, std::int64_t step, double learning_rate) {
  if (std::isfinite(loss)) return;
  // The sign of a NaN says nothing.
  throw DivergenceError(fmt::format(
      "step {}: found a loss of {}, expected a finite one: training diverged at learning rate {:.6g}; a "
      "lower --learning-rate, warm-up or --clip-gradient-norm may help",
      step, std::isnan(loss) ? std::fabs(loss) : loss, learning_rate));
}

}  // namespace convoy::app
