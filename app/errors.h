// The ways in which a verb ends with another status than 0. Any other exception is a failure of
// status 1.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::app {

// The command line is wrong: one line that names the flag; exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws UsageError if `flag` was given but has no effect, because `found`, the value of flag `to`,
// is none of `fitting`.
void check_belongs(const std::string& flag, bool given, const std::string& to, const std::string& found,
                   const std::vector<std::string_view>& fitting);

// Ends the process without a message, as all was said: with 75 after a stop by a signal, or with
// the status of another rank's failure.
struct ExitStatus {
  int status;
};

}  // namespace convoy::app
