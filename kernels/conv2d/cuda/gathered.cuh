// Host code of the gathered engine that is common to its kernel families. CUDA builds only.
#pragma once

#include "kernels/conv2d/engines.h"
#include "kernels/gemm/common/epilogue.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::conv {

// The arguments of one launch of the product.
struct GatheredCall {
  Task task;
  gemm::Problem product;
  gemm::Plan plan;
  const void* images;
  // The second operand: the weights [K, R S C] in forward, their transpose [C, R S K] in
  // backward_data, and dy [N P Q, K] in backward_weights.
  const void* other;
  int image_pitch;  // elements of a pixel of the images, with the channels of all groups
  int dy_pitch;     // for backward_weights: elements of a pixel of dy, with the channels of all groups
  bool vectors;     // 16-byte copies are possible
  gemm::Epilogue epilogue;
  MemberLayout members;
};
void start_gathered_mma(const GatheredCall& call, cudaStream_t stream);
void start_gathered_registers(const GatheredCall& call, cudaStream_t stream);

}  // namespace convoy::kernels::conv
