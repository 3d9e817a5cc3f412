// Host code that the cuda.cu files share: makes a Kernel from a function that enqueues work, checks
// layouts and element types of activations, and computes grid sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/device/cuda_resident.h"
#include "kernels/device/gpu_model.h"
#include "kernels/device/host_kernel.h"

namespace convoy::kernels::cuda {

// Makes a kernel whose launch calls body(const BoundOperands&, Stream). `body` only enqueues work,
// and does so for all members (MemberLayout, kernel.h).
template <typename Body>
Kernel device_kernel(Body body, std::vector<std::pair<int, int>> in_place = {},
                     std::size_t workspace_bytes = 0) {
  Kernel kernel;
  kernel.workspace_bytes = workspace_bytes;
  kernel.in_place = std::move(in_place);
  kernel.takes_members = true;
  kernel.bind = [body = std::move(body)](const Operands& operands) -> Launch {
    return [body, bound = std::make_shared<const BoundOperands>(operands)](Stream stream) {
      body(*bound, stream);
    };
  };
  return kernel;
}

// Makes a kernel in which the last block to finish does additional work. Blocks count with tickets
// (counters in device memory, cuda_resident.h) to find out which of them is the last. `tickets`
// says how many counters the kernel needs for each of the members that run together (MemberLayout,
// kernel.h). The launch calls body(const BoundOperands&, unsigned* counters, Stream), where
// `counters` points to those of member 0. Those of the other members follow.
template <typename Body>
Kernel ticketed_kernel(Body body, int tickets, std::vector<std::pair<int, int>> in_place,
                       std::size_t workspace_bytes) {
  Kernel kernel;
  kernel.workspace_bytes = workspace_bytes;
  kernel.in_place = std::move(in_place);
  kernel.takes_members = true;
  kernel.bind = [body = std::move(body), tickets](const Operands& operands) -> Launch {
    const auto with_tickets = [body, held = reserve_tickets(tickets * operands.members.count)](
                                  const BoundOperands& bound, Stream stream) {
      body(bound, held.get(), stream);
    };
    return device_kernel(with_tickets).bind(operands);
  };
  return kernel;
}

// If the operand's layout is open, sets it to channels_last (for four extents) or row_major. Throws
// std::invalid_argument if the operand has another layout.
void require_activation_layout(std::string_view operation, TensorDesc& desc);
void require_activation_layouts(std::string_view operation, KernelRequest& request);
// Returns the element type of all operands, f32 or bf16. Throws std::invalid_argument if they do
// not all have the same.
DType common_dtype(std::string_view operation, const std::vector<const TensorDesc*>& descs);

// Throws std::invalid_argument if `count` is 2^31 or more, because kernels count in 31 bits.
void require_below_2g(std::string_view operation, std::int64_t count);

// The number of multiprocessors of the reference GPU. It is a constant, so that the order of a sum
// does not depend on the device.
inline constexpr int kMultiprocessors = kReferenceGpu.multiprocessors;
inline constexpr int kThreads = 256;

// Returns how many neighbouring pixels of a channels_last image should be joined, so that the
// joined channels fill whole packs of 16 bytes for each of these channel counts. The number is a
// power of two that divides `pixels`. Returns 1 if no number suits, or if no joining is needed.
inline int joined_pixels(DType type, std::int64_t pixels, std::initializer_list<std::int64_t> channels) {
  const int wide = 16 / static_cast<int>(bytes_of(type));
  for (int joined = 1; joined <= wide && pixels % joined == 0; joined *= 2)
    if (std::all_of(channels.begin(), channels.end(), [&](std::int64_t c) { return c * joined % wide == 0; }))
      return joined;
  return 1;
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Returns how many blocks a loop over `items` needs if each item has a thread, up to the largest
// grid. In loops that memory bandwidth limits, many short blocks are 8 % faster than few long ones.
inline unsigned grid_for(std::int64_t items, int threads = kThreads) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(ceil_div(items, threads), 1, (1u << 31) - 1));
}

// Returns a number of blocks that can all run at the same time. Use it if each block writes a
// partial sum, or if the set-up of a thread is expensive.
inline unsigned resident_grid(std::int64_t items) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(ceil_div(items, kThreads), 1, 8 * kMultiprocessors));
}

}  // namespace convoy::kernels::cuda
