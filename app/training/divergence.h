// The early stop of a run whose loss is no number any more.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace convoy::app {

struct DivergenceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws DivergenceError, one line that names step, loss and learning rate, when `loss` is NaN or infinite.
void check_loss(double loss, std::int64_t step, double learning_rate);

}  // namespace convoy::app
