// Makes random operands, and computes the expected values with which Bench::check() (measure.h)
// compares a plan's C. CUDA builds only.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/gemm/gemm.h"

namespace convoy::kernels::gemm {

// Fills `data` with normally distributed values, which depend only on the seed and the index.
void fill_random(void* data, DType type, std::int64_t count, std::uint64_t seed, cudaStream_t stream);

// One sampled element of C. `magnitude` is the sum of the absolute values of its products.
struct Sample {
  std::int32_t row, column;
  double expected, magnitude;
  float found;
};
// Computes `expected`, `magnitude` and `found` of samples whose row and column are set. `before` is
// C before the run, or null if beta is 0.
void evaluate_samples(const Problem& problem, const Buffers& buffers, const void* before, Sample* samples,
                      std::int64_t count, cudaStream_t stream);

}  // namespace convoy::kernels::gemm
