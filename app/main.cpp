// The `convoy` program.
#include <csignal>

#include "app/commands/commands.h"

int main(int argc, char** argv) {
  // Without the signal, a file that exceeds the size limit (ulimit -f) fails like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  return convoy::app::run_command(argc, argv);
}
