#include "comm/watchdog/terminate_signal.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace convoy::comm {
namespace {

std::atomic<int> wake_descriptor = -1;
std::atomic<bool> terminate_arrived = false;
std::atomic<void (*)(int)> default_action = SIG_DFL;
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

void TerminateSignal::set_default(void (*handler)(int)) { default_action = handler; }

void TerminateSignal::hold(int wake_fd) {
  struct sigaction current {};
  if (::sigaction(SIGTERM, nullptr, &current) != 0) return;
  if (current.sa_handler != SIG_DFL && current.sa_handler != default_action) return;
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
    ::signal(SIGTERM, default_action);
  wake_descriptor = -1;
}

void TerminateSignal::ignore() { wake_descriptor = -1; }

void TerminateSignal::deliver() {
  ::signal(SIGTERM, default_action);
  ::kill(::getpid(), SIGTERM);
  for (;;) ::pause();
}

}  // namespace convoy::comm
