// Makes random operands, and computes sampled elements of C in double precision.
#include "kernels/device/cuda_error.h"
#include "kernels/device/philox.h"
#include "kernels/gemm/bench/oracle.h"
#include "kernels/gemm/common/epilogue.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::gemm {
namespace {

template <typename T>
__global__ void fill_random_kernel(T* data, std::int64_t count, std::uint64_t seed) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < (count + 3) / 4;
       i += stride) {
    const Philox4 words = philox(seed, std::uint64_t(i));
    for (int pair = 0; pair < 2; ++pair) {  // this is the Box-Muller transform
      const float radius = sqrtf(-2 * logf(1 - uniform(words.word[pair * 2])));
      float sine, cosine;
      sincospif(2 * uniform(words.word[pair * 2 + 1]), &sine, &cosine);
      if (i * 4 + pair * 2 < count) data[i * 4 + pair * 2] = T(radius * cosine);
      if (i * 4 + pair * 2 + 1 < count) data[i * 4 + pair * 2 + 1] = T(radius * sine);
    }
  }
}

// A block computes one sampled element of C.
template <typename T>
__global__ void evaluate_kernel(Problem p, Buffers buffers, const void* before, Sample* samples) {
  Sample& sample = samples[blockIdx.x];
  const std::int64_t row = sample.row, column = sample.column;
  const T* a = static_cast<const T*>(buffers.a) + (p.transpose_a ? row : row * p.lda);
  const T* b = static_cast<const T*>(buffers.b) + (p.transpose_b ? column * p.ldb : column);
  const std::int64_t step_a = p.transpose_a ? p.lda : 1, step_b = p.transpose_b ? 1 : p.ldb;
  double sum = 0, magnitude = 0;
  for (std::int64_t k = threadIdx.x; k < p.k; k += blockDim.x) {
    const double product = double(float(a[k * step_a])) * double(float(b[k * step_b]));
    sum += product;
    magnitude += fabs(product);
  }
  __shared__ double shared[2][128];
  shared[0][threadIdx.x] = sum;
  shared[1][threadIdx.x] = magnitude;
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      for (auto& values : shared) values[threadIdx.x] += values[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  Epilogue c;
  c.bf16 = p.output == DType::bf16;
  const std::int64_t index = row * p.ldc + column;
  double expected = p.alpha * shared[0][0];
  if (p.beta != 0) {
    c.c = const_cast<void*>(before);
    expected += double(p.beta) * c.load(index);
  }
  if (p.bias) expected += buffers.bias[column];
  if (p.relu) expected = fmax(expected, 0.0);
  c.c = buffers.c;
  sample.expected = expected;
  sample.magnitude = fabs(double(p.alpha)) * shared[1][0];
  sample.found = c.load(index);
}

}  // namespace

void fill_random(void* data, DType type, std::int64_t count, std::uint64_t seed, cudaStream_t stream) {
  if (type == DType::bf16)
    fill_random_kernel<<<1056, 256, 0, stream>>>(static_cast<__nv_bfloat16*>(data), count, seed);
  else
    fill_random_kernel<<<1056, 256, 0, stream>>>(static_cast<float*>(data), count, seed);
  CONVOY_CUDA(cudaGetLastError());
}

void evaluate_samples(const Problem& problem, const Buffers& buffers, const void* before, Sample* samples,
                      std::int64_t count, cudaStream_t stream) {
  if (problem.math == Math::bf16)
    evaluate_kernel<__nv_bfloat16><<<unsigned(count), 128, 0, stream>>>(problem, buffers, before, samples);
  else
    evaluate_kernel<float><<<unsigned(count), 128, 0, stream>>>(problem, buffers, before, samples);
  CONVOY_CUDA(cudaGetLastError());
}

}  // namespace convoy::kernels::gemm
