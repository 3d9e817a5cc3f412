#include "app/training/signals.h"

#include <atomic>
#include <stdexcept>

namespace convoy::app {
namespace {

// All that a signal handler may touch.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);
std::atomic<bool> installed{false};

extern "C" void remember(int signal) { received_signal.store(signal); }

void install(int signal, struct sigaction* former) {
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;  // reads and writes of the run go on
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, &action, former) != 0) throw std::runtime_error("cannot handle a signal");
}

}  // namespace

StopSignals::StopSignals() {
  if (installed.exchange(true)) throw std::logic_error("stop signals are handled already");
  received_signal.store(0);
  install(SIGTERM, &former_term_);
  install(SIGUSR1, &former_usr1_);
}

StopSignals::~StopSignals() {
  sigaction(SIGTERM, &former_term_, nullptr);
  sigaction(SIGUSR1, &former_usr1_, nullptr);
  installed.store(false);
}

int StopSignals::received() const { return received_signal.load(std::memory_order_relaxed); }

}  // namespace convoy::app
