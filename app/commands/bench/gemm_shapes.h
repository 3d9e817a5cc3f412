// The matrix products that `convoy bench gemm` times.
#pragma once

#include <string>
#include <vector>

#include "kernels/gemm/gemm.h"

namespace convoy::app {

struct GemmShape {
  std::string group;  // "listed", "gradients", or "given" on the command line
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;

  // A forward product or a gradient of the data keeps the type of the activations; a gradient of weights, the
  // one product with A transposed, is accumulated in f32.
  kernels::gemm::Problem problem(kernels::gemm::Math math) const;
};

// The shapes of fully connected nets, squares, and ResNet-50's layers at batch 256, as forward products
// Y[m, n] = X[m, k] W[n, k]^T.
std::vector<GemmShape> listed_gemm_shapes();
// The gradients of ResNet-50's layers at batch 256: of the data, dX = dY W, and of the weights, dW = dY^T X. A
// convolution counts as the product with its im2col matrix.
std::vector<GemmShape> gradient_gemm_shapes();
// "NT:8192x8192x8192"; the letters, N or T for A and B, may be left out and are then NT. Throws UsageError.
GemmShape parse_gemm_shape(const std::string& text);

}  // namespace convoy::app
