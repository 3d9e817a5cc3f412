// The little device memory beside the arena that kernels keep from launch to launch: tickets and constant
// tables. Reserved when a kernel is bound, never while a step runs.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace convoy::kernels::cuda {

// Counters by which the blocks of one launch find out which of them finishes last. They start at zero and every
// launch leaves them at zero, so a captured step needs nothing to clear them. Held until the result is
// destroyed. Throws std::runtime_error when the pool of 65,536 is used up.
std::shared_ptr<unsigned> reserve_tickets(int count);

// A copy of the bytes in device memory, freed with the result.
std::shared_ptr<const void> upload(const void* data, std::size_t bytes);

template <typename T>
std::shared_ptr<const T> upload(const std::vector<T>& table) {
  return std::static_pointer_cast<const T>(upload(table.data(), table.size() * sizeof(T)));
}

}  // namespace convoy::kernels::cuda
