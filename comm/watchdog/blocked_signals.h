// Keeps handled signals off the threads that compute.
//
// A handler's frame is written below the stack pointer of the thread that it interrupts. oneDNN's matrix products
// (jit_avx_gemm_f32) point the stack pointer into a buffer of the heap when theirs does not fit on the stack, so there
// the frame overwrites whatever lies before the buffer. A signal with a handler is therefore blocked in every such
// thread, and a thread that does not compute takes it.
#pragma once

#include <csignal>
#include <initializer_list>

namespace convoy::comm {

inline sigset_t signal_set(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

// Blocks these signals in the calling thread and in those that it starts, as long as this object lives; made and
// destroyed by one thread.
class BlockedSignals {
 public:
  explicit BlockedSignals(const sigset_t& signals) { ::pthread_sigmask(SIG_BLOCK, &signals, &former_); }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &former_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t former_{};
};

// The calling thread takes these signals.
inline void unblock_signals(std::initializer_list<int> signals) {
  const sigset_t set = signal_set(signals);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace convoy::comm
