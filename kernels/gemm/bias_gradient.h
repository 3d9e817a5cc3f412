// Sums of the columns of a row-major matrix, the gradient of a bias: dbias[c] = sum over rows of dy[row][c]. In a fixed
// order, in fp32. CUDA builds only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/kernel.h"

namespace convoy::kernels::gemm {

std::size_t bias_gradient_workspace(DType type, std::int64_t rows, std::int64_t columns);
void bias_gradient(DType type, const void* dy, std::int64_t rows, std::int64_t columns, float* dbias,
                   void* workspace, Stream stream);

}  // namespace convoy::kernels::gemm
