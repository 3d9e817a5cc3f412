// The formulas of activations in double precision, for the reference kernels that apply them.
#pragma once

#include "kernels/activation/activation.h"

namespace convoy::kernels::reference {

double activation_value(const ActivationProblem& problem, double x);
// Returns the derivative at x. For clip and leaky_relu, y in place of x gives the same result.
double activation_derivative(const ActivationProblem& problem, double x);

}  // namespace convoy::kernels::reference
