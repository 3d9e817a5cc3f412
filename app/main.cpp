// The `convoy` program.
#include <csignal>

#include "app/commands/commands.h"
#include "app/commands/ending_signals.h"

int main(int argc, char** argv) {
  // Ignore SIGXFSZ. The signal would kill a process that writes beyond the size limit of files
  // (ulimit -f). If it is ignored, the write returns an error, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  convoy::app::handle_ending_signals();
  return convoy::app::run_command(argc, argv);
}
