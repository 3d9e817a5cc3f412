// Small device memory that kernels keep from launch to launch: tickets and constant tables. It is
// reserved when a kernel is bound, never while a step runs, and is not part of the arena.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace convoy::kernels::cuda {

// Reserves tickets: counters by which the blocks of a launch find out which of them finishes last.
// They are zero before and after each launch. Releasing the result frees them. Throws
// std::runtime_error if the pool of 1,048,576 tickets is used up.
std::shared_ptr<unsigned> reserve_tickets(int count);

// Copies the bytes to device memory. Releasing the result frees this memory.
std::shared_ptr<const void> upload(const void* data, std::size_t bytes);

template <typename T>
std::shared_ptr<const T> upload(const std::vector<T>& table) {
  return std::static_pointer_cast<const T>(upload(table.data(), table.size() * sizeof(T)));
}

}  // namespace convoy::kernels::cuda
