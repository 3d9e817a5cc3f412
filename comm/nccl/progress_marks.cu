#include <atomic>

#include "comm/nccl/progress_marks.h"
#include "kernels/device/cuda_driver.h"

namespace convoy::comm {
namespace {

using Word = unsigned long long;
constexpr int kOperationBits = 16;
static_assert(ProgressMarks::kMostOperations == 1 << kOperationBits);

struct Shown {
  // How many operations have begun, and the identifying number of the last one. Both are in one
  // word, so that a reader cannot get them from different moments.
  Word entered;
  // When the last operation began, in ns. A reader may get an `entered` and a `since` that belong
  // to two successive operations, because the device writes the words one after the other.
  Word since;
  unsigned active;  // 1 from the start of an operation to its end
};

__global__ void mark_entered(Word* counter, volatile Shown* shown, unsigned operation) {
  Word now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  shown->since = now;
  shown->entered = (++*counter << kOperationBits) | operation;
  __threadfence_system();
  shown->active = 1;
}

}  // namespace

ProgressMarks::ProgressMarks() : counter_(sizeof(Word)), shown_(sizeof(Shown)) {
  CONVOY_CUDA(cudaMemset(counter_.data(), 0, counter_.bytes()));
  CONVOY_CUDA(cudaDeviceSynchronize());
  *reinterpret_cast<Shown*>(shown_.data()) = {};
}

void ProgressMarks::enter(cudaStream_t stream, int operation) const {
  mark_entered<<<1, 1, 0, stream>>>(reinterpret_cast<Word*>(counter_.data()),
                                    reinterpret_cast<Shown*>(shown_.data()),
                                    static_cast<unsigned>(operation));
  CONVOY_CUDA(cudaGetLastError());
}

void ProgressMarks::finish(cudaStream_t stream) const {
  static auto* const write_value =
      kernels::driver_function<decltype(&cuStreamWriteValue32)>("cuStreamWriteValue32");
  auto* shown = reinterpret_cast<Shown*>(shown_.data());
  // The device uses the same address for pinned memory as the host.
  kernels::check_driver(
      write_value(stream, reinterpret_cast<CUdeviceptr>(&shown->active), 0, CU_STREAM_WRITE_VALUE_DEFAULT),
      "cuStreamWriteValue32");
}

ProgressMarks::Counts ProgressMarks::read() const {
  auto* shown = reinterpret_cast<Shown*>(shown_.data());
  const bool active = std::atomic_ref<unsigned>(shown->active).load() != 0;
  const Word entered = std::atomic_ref<Word>(shown->entered).load();
  const Word count = entered >> kOperationBits;
  const Word since = std::atomic_ref<Word>(shown->since).load();
  return {count, count - (active ? 1 : 0), static_cast<int>(entered & ((1u << kOperationBits) - 1)), since};
}

}  // namespace convoy::comm
