// How a verb ends when it does not end with status 0. Whatever else is thrown is a failure of status 1.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::app {

// A wrong command line, in one line that names the flag: exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A flag that would have no effect: throws UsageError if it was given and `found`, the value of flag `to`, is none of
// those that it fits.
void check_belongs(const std::string& flag, bool given, const std::string& to, const std::string& found,
                   const std::vector<std::string_view>& fitting);

// Everything there is to say has been said: a run that checkpointed on a signal ends with 75, a rank that follows
// another one's failure with that rank's status.
struct ExitStatus {
  int status;
};

}  // namespace convoy::app
