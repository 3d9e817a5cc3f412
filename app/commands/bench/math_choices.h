// Names the precisions of matrix products, for the flag --precision of `bench gemm` and `bench
// conv`.
#pragma once

#include "app/choices.h"
#include "kernels/gemm/gemm.h"

namespace convoy::app {

template <>
inline constexpr auto kChoices<kernels::gemm::Math> =
    std::to_array<Choice<kernels::gemm::Math>>({{"fp32", kernels::gemm::Math::fp32},
                                                {"tf32", kernels::gemm::Math::tf32},
                                                {"bf16", kernels::gemm::Math::bf16}});

}  // namespace convoy::app
