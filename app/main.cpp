// The `convoy` program.
#include <csignal>

#include "app/commands/commands.h"

int main(int argc, char** argv) {
  // Ignore the signal. Writing beyond the size limit of files (ulimit -f) then fails like a full
  // disk.
  std::signal(SIGXFSZ, SIG_IGN);
  return convoy::app::run_command(argc, argv);
}
