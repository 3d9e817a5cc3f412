// Activations of a few values on the host, for kernels that apply them while the values are in the
// cache.
#pragma once

#include "kernels/activation/activation.h"

namespace convoy::kernels::cpu {

void activate(const ActivationProblem& problem, float* values, std::int64_t count);
// Replaces each value x by f'(x).
void differentiate(const ActivationProblem& problem, float* values, std::int64_t count);
// Returns whether f(0) is not 0. If so, the padding of blocked layouts must be cleared afterwards.
bool moves_zero(const ActivationProblem& problem);

}  // namespace convoy::kernels::cpu
