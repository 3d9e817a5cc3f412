// Activations of a few values on the host, for kernels that apply them to what is in the caches.
#pragma once

#include "kernels/activation/activation.h"

namespace convoy::kernels::cpu {

void activate(const ActivationProblem& problem, float* values, std::int64_t count);
// Replaces values of x by the derivative there.
void differentiate(const ActivationProblem& problem, float* values, std::int64_t count);
// Returns whether f(0) is not 0, so that the padding of blocked layouts must be cleared.
bool moves_zero(const ActivationProblem& problem);

}  // namespace convoy::kernels::cpu
