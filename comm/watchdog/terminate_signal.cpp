#include "comm/watchdog/terminate_signal.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace convoy::comm {
namespace {

std::atomic<int> wake_descriptor = -1;
std::atomic<bool> terminate_arrived = false;
std::atomic<void (*)()> delivery_action = nullptr;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

extern "C" void on_terminate(int) {
  const int saved = errno;
  terminate_arrived = true;
  const char byte = 0;
  // The write fails if the pipe is full. That does not matter, because a full pipe wakes the
  // watchdog, too.
  [[maybe_unused]] const auto written = ::write(wake_descriptor, &byte, 1);
  errno = saved;
}

}  // namespace

void TerminateSignal::hold(int wake_fd) {
  struct sigaction current {};
  if (::sigaction(SIGTERM, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) return;
  wake_descriptor = wake_fd;
  terminate_arrived = false;
  struct sigaction ours {};
  ours.sa_handler = on_terminate;
  ours.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &ours, nullptr);
}

bool TerminateSignal::arrived() { return terminate_arrived; }

void TerminateSignal::release() {
  struct sigaction current {};
  if (::sigaction(SIGTERM, nullptr, &current) == 0 && current.sa_handler == on_terminate)
    ::signal(SIGTERM, SIG_DFL);
  wake_descriptor = -1;
}

void TerminateSignal::ignore() { wake_descriptor = -1; }

void TerminateSignal::before_delivery(void (*action)()) { delivery_action = action; }

void TerminateSignal::deliver() {
  if (void (*action)() = delivery_action; action != nullptr) action();
  ::signal(SIGTERM, SIG_DFL);
  ::kill(::getpid(), SIGTERM);
  for (;;) ::pause();
}

}  // namespace convoy::comm
