// Adds up the rows of a row-major matrix, which gives the gradient of a bias: dbias[c] = sum over
// rows of dy[row][c]. Sums are fp32, in a fixed order. CUDA builds only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/kernel.h"

namespace convoy::kernels::gemm {

std::size_t bias_gradient_workspace(DType type, std::int64_t rows, std::int64_t columns);
void bias_gradient(DType type, const void* dy, std::int64_t rows, std::int64_t columns, float* dbias,
                   void* workspace, Stream stream, MemberLayout members);

}  // namespace convoy::kernels::gemm
