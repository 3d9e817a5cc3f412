#include "kernels/device/cuda_resident.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "kernels/device/cuda_error.h"
#include "kernels/device/device_memory.h"

namespace convoy::kernels::cuda {
namespace {

constexpr int kPool = 1 << 20;

// Hands out the tickets of one device (cuda_resident.h). A request gets the first gap that is large
// enough. The pools live until the process ends.
class Pool {
 public:
  Pool() {
    void* memory = nullptr;
    CONVOY_CUDA(cudaMalloc(&memory, kPool * sizeof(unsigned)));
    base_ = static_cast<unsigned*>(memory);
    CONVOY_CUDA(cudaMemset(base_, 0, kPool * sizeof(unsigned)));
    synchronize(Backend::cuda);
  }

  unsigned* take(int count) {
    const std::scoped_lock lock(mutex_);
    int first = 0;
    for (const auto& [start, length] : taken_) {
      if (start - first >= count) break;
      first = start + length;
    }
    if (first + count > kPool)
      throw std::runtime_error(fmt::format("more than {} tickets for reductions on one device", kPool));
    taken_[first] = count;
    return base_ + first;
  }

  void give_back(const unsigned* tickets) {
    const std::scoped_lock lock(mutex_);
    taken_.erase(static_cast<int>(tickets - base_));
  }

 private:
  unsigned* base_ = nullptr;
  std::mutex mutex_;
  std::map<int, int> taken_;  // maps the first ticket of a reservation to its count
};

Pool& pool_of_current_device() {
  static std::mutex mutex;
  static std::map<int, Pool> pools;
  int device = 0;
  CONVOY_CUDA(cudaGetDevice(&device));
  const std::scoped_lock lock(mutex);
  return pools[device];
}

}  // namespace

std::shared_ptr<unsigned> reserve_tickets(int count) {
  Pool& pool = pool_of_current_device();
  return {pool.take(std::max(count, 1)), [&pool](const unsigned* tickets) { pool.give_back(tickets); }};
}

std::shared_ptr<const void> upload(const void* data, std::size_t bytes) {
  void* memory = nullptr;
  CONVOY_CUDA(cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)));
  std::shared_ptr<const void> owner(memory, [](const void* p) { cudaFree(const_cast<void*>(p)); });
  CONVOY_CUDA(cudaMemcpy(memory, data, bytes, cudaMemcpyHostToDevice));
  return owner;
}

}  // namespace convoy::kernels::cuda
