// One run in one folder: two at a time would write each other's metrics and delete each other's
// checkpoints, and a later one would replace the results of the first.
#pragma once

#include <filesystem>

namespace convoy::app {

// Whether an earlier run has left metrics, results or checkpoints in the folder.
bool holds_a_run(const std::filesystem::path& folder);

class RunLock {
 public:
  // Locks DIR/.lock, which goes with the process, however it ends, and leaves there who holds it. Throws
  // std::runtime_error when another process has the lock, on any host where the file system tells hosts of each
  // other's locks. A file system without locks (`lock` fails with anything but EWOULDBLOCK) does not keep a run from
  // its work. Makes the folder where there is none.
  explicit RunLock(const std::filesystem::path& folder, int (*lock)(int file, int operation) = nullptr);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace convoy::app
