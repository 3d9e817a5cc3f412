#include <stdexcept>

#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/cuda_stamps.h"
#include "kernels/device/device_memory.h"

namespace convoy::kernels {
namespace {

__global__ void write_time(unsigned long long* place) {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  *place = now;
}

}  // namespace

DeviceStamps::DeviceStamps(int count)
    : count_(count), times_(static_cast<std::size_t>(count) * sizeof(unsigned long long)) {
  if (count == 0) return;
  CONVOY_CUDA(cudaMemset(times_.data(), 0, times_.bytes()));
  // Wait for the zeros. They could otherwise overwrite a stamp of another stream.
  synchronize(Backend::cuda);
}

void DeviceStamps::take(Stream stream, int index) const {
  if (index < 0 || index >= count_) throw std::logic_error("a time stamp without a place");
  cuda::launch(write_time, 1, 1, stream, reinterpret_cast<unsigned long long*>(times_.data()) + index);
}

}  // namespace convoy::kernels
