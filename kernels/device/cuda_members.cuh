// Lets one launch compute all members: trainings that run together (MemberLayout, kernel.h). A
// block computes the member whose number is its index z in the grid. A kernel gets the pointers of
// member 0. It must move them to its own member's memory before it uses them. Tables that all
// members share, and tickets (cuda_resident.h), are not moved.
#pragma once

#include <cstddef>

#include "kernels/device/cuda_error.h"
#include "kernels/device/kernel.h"

namespace convoy::kernels::cuda {

// Returns the address `offset` bytes after `pointer`, or null if `pointer` is null.
template <typename T>
__device__ __forceinline__ T* moved(T* pointer, std::ptrdiff_t offset) {
  auto* const bytes = static_cast<char*>(const_cast<void*>(static_cast<const void*>(pointer)));
  return static_cast<T*>(static_cast<void*>(bytes + (pointer == nullptr ? 0 : offset)));
}

// Translates an address in the memory of member 0 to the memory of the member that this block
// computes.
template <typename T>
__device__ __forceinline__ T* of_member(T* pointer, std::ptrdiff_t stride) {
  return moved(pointer, stride * static_cast<std::ptrdiff_t>(blockIdx.z));
}

// Moves pointers from the memory of member 0 to that of the block's member (MemberLayout,
// kernel.h). Blocks of member 0 jump over the move. So if only one training runs, the GPU does not
// even fetch its instructions, which saves time in a step of many short kernels.
template <typename... T>
__device__ __forceinline__ void move_to_member(std::ptrdiff_t stride, T*&... pointers) {
  if (__builtin_expect(blockIdx.z != 0, 0)) ((pointers = of_member(pointers, stride)), ...);
}

// Returns the operands with all pointers moved to the memory of the block's member. Operands must
// have each_pointer(visit), which calls visit(pointers...).
template <typename Operands>
__device__ __forceinline__ Operands of_member(Operands operands, std::ptrdiff_t stride) {
  operands.each_pointer([stride](auto*&... pointers) { move_to_member(stride, pointers...); });
  return operands;
}

// Launches a kernel for all members at once. The kernel's last parameter is MemberLayout::stride.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 threads, std::size_t shared_bytes, Stream stream,
            MemberLayout members, Arguments&&... arguments) {
  grid.z = static_cast<unsigned>(members.count);
  kernel<<<grid, threads, shared_bytes, stream.get()>>>(std::forward<Arguments>(arguments)...,
                                                        members.stride);
  CONVOY_CUDA(cudaGetLastError());
}
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 threads, Stream stream, MemberLayout members,
            Arguments&&... arguments) {
  launch(kernel, grid, threads, std::size_t{0}, stream, members, std::forward<Arguments>(arguments)...);
}

}  // namespace convoy::kernels::cuda
