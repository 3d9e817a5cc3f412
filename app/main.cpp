// The `convoy` command: picks the verb, nothing more.
#include <csignal>

#include "app/commands/commands.h"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the limit is then an error like a full disk
  return convoy::app::run_command(argc, argv);
}
