// Whether somebody watches standard output, and how wide it is.
#pragma once

namespace convoy::app {

struct Terminal {
  bool interactive = false;
  int columns = 80;
};

// mpirun gives its ranks a terminal of its own even when it writes to a file itself; there its own standard output
// decides. A rank on another host than mpirun's is never interactive.
Terminal standard_output_terminal();

}  // namespace convoy::app
