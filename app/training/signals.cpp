#include "app/training/signals.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <thread>

namespace convoy::app {
namespace {

// All that a signal handler may touch.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void remember(int signal) { received_signal.store(signal); }

// A second one that somebody means: timeout(1) and process groups send a signal twice within a moment.
std::atomic<std::int64_t> first_interrupt{0};  // milliseconds
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

extern "C" void interrupt(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t at = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  std::int64_t first = 0;
  if (first_interrupt.compare_exchange_strong(first, at)) return remember(signal);
  if (at - first < 500) return;
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void install(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // reads and writes of the run go on
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, &action, nullptr) != 0) throw std::runtime_error("cannot handle a signal");
}

}  // namespace

StopSignals::StopSignals() {
  static std::atomic<bool> installed{false};
  if (installed.exchange(true)) throw std::logic_error("stop signals are handled already");
  install(SIGTERM, remember);
  install(SIGUSR1, remember);
  struct sigaction current {};
  sigaction(SIGINT, nullptr, &current);
  if (current.sa_handler != SIG_IGN) install(SIGINT, interrupt);  // ignored: a shell's background job
  std::thread([] {
    comm::unblock_signals({SIGTERM, SIGUSR1, SIGINT});
    for (;;) ::pause();
  }).detach();
}

int StopSignals::received() const { return received_signal.load(std::memory_order_relaxed); }

}  // namespace convoy::app
