// Prevents two runs from using one folder, in which they would mix their metrics, delete each
// other's checkpoints and replace each other's results.
#pragma once

#include <filesystem>

namespace convoy::app {

// Returns whether an earlier run has left metrics, results or checkpoints in the folder.
bool holds_a_run(const std::filesystem::path& folder);

class RunLock {
 public:
  // Makes the folder if it does not exist, locks DIR/.lock and writes there which process holds the
  // lock. The lock ends with the process, however the process ends. Throws std::runtime_error if
  // another process holds the lock, on any host whose file system shares locks. A file system
  // without locks does not stop the run.
  explicit RunLock(const std::filesystem::path& folder, int (*lock)(int file, int operation) = nullptr);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace convoy::app
