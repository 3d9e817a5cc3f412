// Activations of a few values on the host, for kernels that apply them while the values are in the
// cache.
#pragma once

#include "kernels/activation/activation.h"

namespace convoy::kernels::cpu {

void activate(const ActivationProblem& problem, float* values, std::int64_t count);
// Replaces each value x by f'(x).
void differentiate(const ActivationProblem& problem, float* values, std::int64_t count);
// Returns whether f(0) is not 0. If so, f turns the zeros that pad blocked layouts into other
// values, and the caller must clear the padding again.
bool moves_zero(const ActivationProblem& problem);

}  // namespace convoy::kernels::cpu
