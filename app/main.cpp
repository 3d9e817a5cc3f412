// The `convoy` program.
#include <csignal>

#include "app/commands/commands.h"

int main(int argc, char** argv) {
  // Ignore this signal, which kills a process that writes beyond the size limit of files (ulimit
  // -f). The write then returns an error, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  return convoy::app::run_command(argc, argv);
}
