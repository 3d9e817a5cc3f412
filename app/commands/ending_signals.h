// Handles the signals that end a command.
#pragma once

namespace convoy::app {

// Makes SIGTERM, SIGINT and SIGHUP remove unfinished files before they end the process, and print a
// line. A rank among several prints none, because mpirun ends ranks by SIGTERM after another rank
// has said what failed. `train` and `share` replace the handlers of SIGTERM and SIGINT by their
// own.
void handle_ending_signals();

}  // namespace convoy::app
