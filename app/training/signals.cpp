#include "app/training/signals.h"

#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace convoy::app {
namespace {

// All that a signal handler may touch.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void remember(int signal) { received_signal.store(signal); }

void install(int signal, int flags = 0) {
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART | flags;  // reads and writes of the run go on
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, &action, nullptr) != 0) throw std::runtime_error("cannot handle a signal");
}

}  // namespace

StopSignals::StopSignals() {
  static std::atomic<bool> installed{false};
  if (installed.exchange(true)) throw std::logic_error("stop signals are handled already");
  install(SIGTERM);
  install(SIGUSR1);
  install(SIGINT, SA_RESETHAND);
  std::thread([] {
    comm::unblock_signals({SIGTERM, SIGUSR1, SIGINT});
    for (;;) ::pause();
  }).detach();
}

int StopSignals::received() const { return received_signal.load(std::memory_order_relaxed); }

}  // namespace convoy::app
