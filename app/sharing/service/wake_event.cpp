#include "app/sharing/service/wake_event.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace convoy::app {

WakeEvent::WakeEvent() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_.get() < 0) throw std::runtime_error(fmt::format("cannot make an event: {}", std::strerror(errno)));
}

// signal() and clear() ignore errors of their system calls. A call fails only if the event already
// has the state that it should set.
void WakeEvent::signal() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
}

void WakeEvent::clear() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto read = ::read(fd_.get(), &count, sizeof count);
}

}  // namespace convoy::app
