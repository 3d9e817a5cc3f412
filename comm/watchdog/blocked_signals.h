// Keeps signals that have a handler away from the threads that compute.
//
// The Linux kernel writes a handler's frame below the stack pointer of the interrupted thread.
// oneDNN's matrix products (jit_avx_gemm_f32) point the stack pointer into a heap buffer if their
// data does not fit on the stack, so the frame would overwrite memory before that buffer. Every
// thread that computes therefore blocks signals that have a handler, and another thread takes them.
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

// Blocks these signals while this object lives, in the calling thread and in threads that it
// starts. Make and destroy the object on the same thread.
class BlockedSignals {
 public:
  explicit BlockedSignals(const sigset_t& signals) { ::pthread_sigmask(SIG_BLOCK, &signals, &former_); }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &former_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t former_{};
};

// Lets the calling thread take these signals.
inline void unblock_signals(std::initializer_list<int> signals) {
  const sigset_t set = signal_set(signals);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace convoy::comm
