// Exceptions that end a subcommand of `convoy` with a certain exit status. Any other exception ends
// it with status 1.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::app {

// Says that the command line is wrong. The message is one line that names the flag. The exit status
// is 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws UsageError if `flag` was given but has no effect. The flag has an effect only if the value
// `found` of another flag, `to`, is one of `fitting`.
void check_belongs(const std::string& flag, bool given, const std::string& to, const std::string& found,
                   const std::vector<std::string_view>& fitting);

// Thrown to end the process with `status` after all messages were printed. The status is 75 after a
// stop by a signal. After the failure of another rank it is the status of that rank.
struct ExitStatus {
  int status;
};

}  // namespace convoy::app
