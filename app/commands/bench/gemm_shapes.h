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

  // Forward products and gradients of the data keep the type of the activations. Gradients of
  // weights, the only products with A transposed, are accumulated in f32.
  kernels::gemm::Problem problem(kernels::gemm::Math math) const;
};

// Returns the shapes of fully connected nets, squares, and the layers of ResNet-50 at batch 256, as
// forward products Y[m, n] = X[m, k] W[n, k]^T.
std::vector<GemmShape> listed_gemm_shapes();
// Returns the gradients of the layers of ResNet-50 at batch 256: dX = dY W of the data and dW =
// dY^T X of the weights. A convolution counts as the product with its im2col matrix.
std::vector<GemmShape> gradient_gemm_shapes();
// Parses "NT:8192x8192x8192". The letters, N or T for A and B, default to NT. Throws UsageError.
GemmShape parse_gemm_shape(const std::string& text);

}  // namespace convoy::app
