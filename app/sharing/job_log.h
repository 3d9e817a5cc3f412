// Puts the name of a job into the warnings that the job's thread logs.
#pragma once

#include <string>

namespace convoy::app {

// Sets the name of the calling thread's job until the object is destroyed.
class LogName {
 public:
  explicit LogName(const std::string& name);
  ~LogName();
  LogName(const LogName&) = delete;
  LogName& operator=(const LogName&) = delete;
};

// From now on, lines of the default logger begin with "convoy: job NAME: " in the thread of a job.
void log_names_of_jobs();

}  // namespace convoy::app
