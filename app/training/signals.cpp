#include "app/training/signals.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <thread>

#include "comm/placement/launcher.h"
#include "data/atomic_file.h"

namespace convoy::app {
namespace {

// The last signal that arrived. It is a lock-free atomic, because a signal handler must not change
// ordinary variables.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void remember(int signal) { received_signal.store(signal); }

std::atomic<bool> starting_up{true};

// Runs in the thread that receives signals. Ends the process if the set-up does not react to a
// signal within a second.
void watch_start_up() {
  using namespace std::chrono_literals;
  constexpr auto kTurn = 100ms;
  for (auto waited = 0ms; starting_up; std::this_thread::sleep_for(kTurn)) {
    if (received_signal == 0) continue;
    waited += kTurn;
    if (waited <= 1s) continue;
    comm::print_once_before_mpi(kStoppedEarly);
    ::_exit(kRequeueStatus);
  }
}

// The time of the first SIGINT. A second SIGINT within half a second is ignored, because timeout(1)
// and process groups send the same signal twice at once.
std::atomic<std::int64_t> first_interrupt{0};  // in milliseconds
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

extern "C" void interrupt(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t at = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  std::int64_t first = 0;
  if (first_interrupt.compare_exchange_strong(first, at)) return remember(signal);
  if (at - first < 500) return;
  data::end_cleanly(signal);
}

void install(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // restarts system calls that the signal interrupts
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
  // A background job of a shell starts with SIGINT ignored. Leave it so.
  if (current.sa_handler != SIG_IGN) install(SIGINT, interrupt);
  std::thread([] {
    comm::unblock_signals({SIGTERM, SIGUSR1, SIGINT});
    watch_start_up();
    for (;;) ::pause();
  }).detach();
}

void StopSignals::start_up_is_over() const { starting_up = false; }

int StopSignals::received() const { return received_signal.load(std::memory_order_relaxed); }

}  // namespace convoy::app
