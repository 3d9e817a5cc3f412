// A file that appears whole or not at all: it is written next to its place, synced and renamed. A
// link's target is replaced, not the link; a device or a pipe is written as it is. std::quick_exit,
// with which the watchdog ends a rank, removes what is being written.
#pragma once

#include <filesystem>
#include <string_view>

namespace convoy::data {

class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path destination);
  ~AtomicFile();  // removes what was not committed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::filesystem::path& path() const { return temporary_; }  // write here
  void
  commit();  // syncs the file, renames it, syncs the folder; throws std::runtime_error naming the destination

 private:
  std::filesystem::path destination_, temporary_;
  bool in_place_ = false, committed_ = false;
};

// From now on SIGINT, SIGTERM and SIGHUP, where they are not ignored (nohup), remove what is being
// written and then end the process, as they would anyway. For commands that do nothing else; a
// training handles signals itself.
void remove_partial_files_on_signals();

void write_file_atomically(const std::filesystem::path& destination, std::string_view content);

}  // namespace convoy::data
