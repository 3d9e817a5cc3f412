// The `convoy` command.
#include <csignal>

#include "app/commands/commands.h"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // writing a file over the limit then fails like a full disk
  return convoy::app::run_command(argc, argv);
}
