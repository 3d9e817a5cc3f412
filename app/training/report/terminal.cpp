#include "app/training/report/terminal.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace convoy::app {
namespace {

Terminal terminal_at(int descriptor) {
  winsize size{};
  Terminal terminal{::isatty(descriptor) == 1, 80};
  if (terminal.interactive && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.columns = size.ws_col;
  }
  return terminal;
}

}  // namespace

Terminal standard_output_terminal() {
  const Terminal own = terminal_at(STDOUT_FILENO);
  if (!own.interactive || std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return own;
  const std::string launcher = fmt::format("/proc/{}/fd/1", ::getppid());
  const int descriptor = ::open(launcher.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return {};
  const Terminal terminal = terminal_at(descriptor);
  ::close(descriptor);
  return terminal;
}

}  // namespace convoy::app
