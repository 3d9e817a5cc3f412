// Prevents two runs from using one folder, in which they would mix their metrics, delete each
// other's checkpoints and replace each other's results.
#pragma once

#include <filesystem>

namespace convoy::app {

// Returns whether an earlier run has left metrics, results or checkpoints in the folder.
bool holds_a_run(const std::filesystem::path& folder);

class RunLock {
 public:
  // Makes the folder if it does not exist, locks DIR/.lock and writes the name of this process
  // there. The lock ends with the process, however the process ends. Throws std::runtime_error if
  // another process holds the lock, also on another host if the file system supports this. On a
  // file system without locks there is no protection and no error.
  explicit RunLock(const std::filesystem::path& folder, int (*lock)(int file, int operation) = nullptr);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace convoy::app
