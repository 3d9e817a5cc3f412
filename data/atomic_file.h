// A file that appears under its name only when it is complete. Until then it has a temporary name
// in the same folder; commit() syncs and renames it. If the destination is a link, the target of
// the link is replaced. A device or a pipe is written directly. std::quick_exit(), by which the
// watchdog of a training ends the process, removes unfinished files.
#pragma once

#include <filesystem>
#include <string_view>

namespace convoy::data {

class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path destination);
  ~AtomicFile();  // removes the temporary file unless commit() succeeded
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::filesystem::path& path() const { return temporary_; }
  // Syncs the file, renames it and syncs the folder. Throws std::runtime_error that names the
  // destination. Without syncing it takes less time, but the file may be cut short if the machine
  // fails.
  enum class Sync : bool { no, yes };
  void commit(Sync sync = Sync::yes);

 private:
  std::filesystem::path destination_, temporary_;
  bool in_place_ = false, committed_ = false;
};

// Handles a signal: removes the unfinished files of this process, prints a line, and ends the
// process by the signal's default action.
extern "C" void end_cleanly(int signal);
// Makes end_cleanly() handle SIGINT, SIGTERM and SIGHUP. Without `with_line` it prints no line. A
// signal that the process ignores (nohup) stays ignored.
void end_cleanly_on_signals(bool with_line = true);

void write_file_atomically(const std::filesystem::path& destination, std::string_view content,
                           AtomicFile::Sync sync = AtomicFile::Sync::yes);

}  // namespace convoy::data
