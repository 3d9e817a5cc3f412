// Adds up the column sums that blocks of the im2col engine have written to slots (norm_sums.h).
// Each of the two consumer warpgroups of a block has a slot of its own.
#include "kernels/batch_norm/cuda.cuh"
#include "kernels/conv2d/cuda/norm_sums.h"
#include "kernels/device/cuda_members.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::conv {
namespace {

// A block computes kChannels channels. kSlices threads divide the slots of a channel among
// themselves.
constexpr int kChannels = 16, kSlices = 64;

// Adds up the slots in a fixed order, so that all runs give the same bits.
__global__ void __launch_bounds__(kChannels* kSlices)
    finish(const float* slots, int count, int channels, int pixels, const __grid_constant__ InputNorm norm,
           const StepControl* control, std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, slots, control);
  __shared__ double shared[2][kSlices][kChannels + 1];
  const int channel = int(blockIdx.x) * kChannels + int(threadIdx.x);
  constexpr int kRounds = (gemm::kSumSlots + kSlices - 1) / kSlices;
  float values[kRounds][2];  // all loads come before the sums, so that they overlap
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    const int slot = int(threadIdx.y) + i * kSlices;
    const bool there = slot < count && channel < channels;
    const float* const from = slots + std::int64_t{slot} * 2 * channels + channel;
    values[i][0] = there ? from[0] : 0, values[i][1] = there ? from[channels] : 0;
  }
  double g = 0, g_x = 0;
#pragma unroll
  for (const auto& value : values) g += value[0], g_x += value[1];
  shared[0][threadIdx.y][threadIdx.x] = g;
  shared[1][threadIdx.y][threadIdx.x] = g_x;
  for (int half = kSlices / 2; half > 0; half /= 2) {
    __syncthreads();
    if (int(threadIdx.y) < 2 * half) {
      const int which = int(threadIdx.y) / half, slice = int(threadIdx.y) % half;
      shared[which][slice][threadIdx.x] += shared[which][slice + half][threadIdx.x];
    }
  }
  __syncthreads();
  if (threadIdx.y > 0 || channel >= channels) return;
  const double inverse = cuda::inverse_of(cuda::count_of(control, norm.synchronised, pixels));
  const cuda::Moments moments =
      cuda::moments_of(cuda::of_member(norm.sums, member_stride), channels, channel, inverse, norm.epsilon);
  g = shared[0][0][threadIdx.x];
  const double g_xhat = (shared[1][0][threadIdx.x] - moments.mean * g) * moments.invstd;
  double* const dsums = cuda::of_member(norm.dsums, member_stride);
  dsums[channel] = g;
  dsums[channels + channel] = g_xhat;
  cuda::of_member(norm.dbeta, member_stride)[channel] = float(g);
  cuda::of_member(norm.dgamma, member_stride)[channel] = float(g_xhat);
}

}  // namespace

void finish_norm_sums(const float* slots, int count, int channels, int pixels, const InputNorm& norm,
                      const StepControl* control, cudaStream_t stream, MemberLayout members) {
  const int blocks = (channels + kChannels - 1) / kChannels;
  cuda::launch(finish, unsigned(blocks), dim3(kChannels, kSlices), Stream(stream), members, slots, count,
               channels, pixels, norm, control);
}

}  // namespace convoy::kernels::conv
