// Computes the expected values with which Bench::check() (measure.h) compares a plan's output. CUDA
// builds only.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

// One sampled element of the output. The element is a sum of products. `magnitude` is the sum of
// their absolute values. `found` is the value that the plan wrote.
struct Sample {
  std::int64_t index;
  double expected, magnitude;
  float found;
};
void evaluate_samples(const Task& task, const Buffers& buffers, Sample* samples, std::int64_t count,
                      cudaStream_t stream);

}  // namespace convoy::kernels::conv
