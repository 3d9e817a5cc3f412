// The `convoy` command: picks the verb, nothing more.
#include "app/commands/commands.h"

int main(int argc, char** argv) { return convoy::app::run_command(argc, argv); }
