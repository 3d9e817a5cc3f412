// Lists the matrix products that `convoy bench gemm` times.
#pragma once

#include <string>
#include <vector>

#include "kernels/gemm/gemm.h"

namespace convoy::app {

struct GemmShape {
  // "listed" or "gradients" for the built-in shapes; "given" for a shape of the command line.
  std::string group;
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;

  // Returns the matrix product. The results of forward products and the gradients of activations
  // have the type of the activations. Gradients of weights are accumulated in f32. They are the
  // products with a transposed A.
  kernels::gemm::Problem problem(kernels::gemm::Math math) const;
};

// Returns shapes of fully connected networks, of square matrices and of the layers of ResNet-50 at
// batch 256. They are forward products Y[m, n] = X[m, k] W[n, k]^T.
std::vector<GemmShape> listed_gemm_shapes();
// Returns the products that compute the gradients in the layers of ResNet-50 at batch 256:
// dX = dY W for a layer's input, and dW = dY^T X for its weights. The matrix X of a convolution is
// its im2col matrix.
std::vector<GemmShape> gradient_gemm_shapes();
// Parses MxNxK, such as "8192x8192x8192". Two letters and a colon may come first, such as "NN:".
// They say whether A and B are transposed (T) or not (N); the default is NT. Throws UsageError.
GemmShape parse_gemm_shape(const std::string& text);

}  // namespace convoy::app
