// Names the backends and precisions as flags, profiles and results spell them.
#pragma once

#include "app/choices.h"
#include "app/graph/passes/precision.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

template <>
inline constexpr auto kChoices<kernels::Backend> =
    std::to_array<Choice<kernels::Backend>>({{"cpu", kernels::Backend::cpu},
                                             {"cuda", kernels::Backend::cuda},
                                             {"reference", kernels::Backend::reference}});

template <>
inline constexpr auto kChoices<Precision> = std::to_array<Choice<Precision>>({{"fp32", Precision::fp32},
                                                                              {"tf32", Precision::tf32},
                                                                              {"bf16", Precision::bf16}});

}  // namespace convoy::app
