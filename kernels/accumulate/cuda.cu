// Adds up the gradients of a batch's parts on the device. A thread adds four elements (16 bytes),
// or one if the number of elements is no multiple of four.
#include "kernels/accumulate/accumulate.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/host_kernel.h"

namespace convoy::kernels::cuda {
namespace {

constexpr int kWidth = 4;

// The pointers must not be __restrict__, because `total` may equal `sum` or `gradients`.
template <int kV>
__global__ void __launch_bounds__(kThreads)
    accumulate(const float* sum, const float* gradients, float* total, std::int64_t packs,
               const StepControl* control, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, sum, gradients, total, control);
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= packs) return;
  const float share = control->share;
  Pack<float, kV> result = control->part > 0 ? load_pack<kV>(sum + i * kV) : zero_pack<float, kV>();
  const Pack<float, kV> g = load_pack<kV>(gradients + i * kV);
#pragma unroll
  for (int k = 0; k < kV; ++k) result.value[k] += share * g.value[k];
  store_pack(total + i * kV, result);
}

}  // namespace

Kernel accumulate_gradients(const AccumulateProblem&, KernelRequest& request) {
  const std::int64_t count = check_accumulate(request);
  return device_kernel([count](const BoundOperands& b, Stream stream) {
    const StepControl* control = b.control();
    if (count == 0) return;
    const std::int64_t packs = count % kWidth == 0 ? count / kWidth : count;
    launch(count % kWidth == 0 ? accumulate<kWidth> : accumulate<1>, grid_for(packs), kThreads, stream,
           b.members, b.in(0), b.in(1), b.out(0), packs, control);
  });
}

}  // namespace convoy::kernels::cuda
