// How a verb ends when it does not end with status 0. Whatever else is thrown is a failure of status 1.
#pragma once

#include <stdexcept>

namespace convoy::app {

// A wrong command line, in one line that names the flag: exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Everything there is to say has been said: a run that checkpointed on a signal ends with 75, a rank that follows
// another one's failure with that rank's status.
struct ExitStatus {
  int status;
};

}  // namespace convoy::app
