#include <atomic>

#include "comm/nccl/progress_marks.h"

namespace convoy::comm {
namespace {

using Word = unsigned long long;
constexpr int kOperationBits = 16;
static_assert(ProgressMarks::kMostOperations == 1 << kOperationBits);

struct Shown {
  Word entered;  // count and operation in one word, so that they are seen together
  Word finished;
};

__global__ void mark_entered(Word* counter, volatile Shown* shown, unsigned operation) {
  shown->entered = (++*counter << kOperationBits) | operation;
}

__global__ void mark_finished(const Word* counter, volatile Shown* shown) { shown->finished = *counter; }

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
  mark_finished<<<1, 1, 0, stream>>>(reinterpret_cast<const Word*>(counter_.data()),
                                     reinterpret_cast<Shown*>(shown_.data()));
  CONVOY_CUDA(cudaGetLastError());
}

ProgressMarks::Counts ProgressMarks::read() const {
  auto* shown = reinterpret_cast<Shown*>(shown_.data());
  // The end first: an operation that ends in between counts as under way, never the reverse.
  const Word finished = std::atomic_ref<Word>(shown->finished).load();
  const Word entered = std::atomic_ref<Word>(shown->entered).load();
  return {entered >> kOperationBits, finished, static_cast<int>(entered & ((1u << kOperationBits) - 1))};
}

}  // namespace convoy::comm
