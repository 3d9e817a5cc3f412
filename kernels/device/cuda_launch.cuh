// Launches kernels from cuda.cu files, and checks for an error after every launch. with_packing()
// turns an element type and a width that are known at run time into template arguments.
#pragma once

#include <stdexcept>
#include <utility>

#include "kernels/device/cuda_elements.cuh"
#include "kernels/device/cuda_error.h"
#include "kernels/device/cuda_kernel.h"
#include "kernels/device/cuda_members.cuh"

namespace convoy::kernels::cuda {

// Launches a kernel whose parameters have no member stride, for one training. cuda_members.cuh has
// a launch() that computes all members (MemberLayout, kernel.h).
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 threads, Stream stream, Arguments&&... arguments) {
  kernel<<<grid, threads, 0, stream.get()>>>(std::forward<Arguments>(arguments)...);
  CONVOY_CUDA(cudaGetLastError());
}

template <typename T, int V>
struct Packing {
  using Type = T;
  static constexpr int kWidth = V;
};

// Calls visit(Packing<element type, width>). The width is the number of elements in 16 bytes if all
// `extents` are multiples of this number, else 1.
template <typename Visit>
auto with_packing(DType type, std::initializer_list<std::int64_t> extents, Visit visit) {
  const auto wide = [&](std::int64_t width) {
    return std::all_of(extents.begin(), extents.end(),
                       [&](std::int64_t extent) { return extent % width == 0; });
  };
  if (type == DType::bf16)
    return wide(kPackWidth<bf16>) ? visit(Packing<bf16, kPackWidth<bf16>>{}) : visit(Packing<bf16, 1>{});
  return wide(kPackWidth<float>) ? visit(Packing<float, kPackWidth<float>>{}) : visit(Packing<float, 1>{});
}

}  // namespace convoy::kernels::cuda
