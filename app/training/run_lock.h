// Keeps two runs out of one folder: they would mix their metrics and delete each other's
// checkpoints, and the later one would replace the results of the first.
#pragma once

#include <filesystem>

namespace convoy::app {

// Returns whether an earlier run has left metrics, results or checkpoints in the folder.
bool holds_a_run(const std::filesystem::path& folder);

class RunLock {
 public:
  // Locks DIR/.lock until the process ends, however it ends, and writes its holder there. Makes the
  // folder if there is none. Throws std::runtime_error if another process has the lock, on any host
  // that shares locks through the file system. A file system without locks does not stop the run.
  explicit RunLock(const std::filesystem::path& folder, int (*lock)(int file, int operation) = nullptr);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace convoy::app
