#include "data/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <stdexcept>

#include "data/path_kind.h"

namespace convoy::data {
namespace {

// The temporary names of the files that are being written. The signal handler removes these files.
// A handler may use only lock-free atomics, so the list has a fixed size.
std::array<std::atomic<const char*>, 256> partial_files{};
static_assert(std::atomic<const char*>::is_always_lock_free);

// True from the moment at which a signal begins to end the process, and the number of threads that
// create, rename or remove a file at this moment.
std::atomic<bool> ending{false};
std::atomic<int> changing{0};
thread_local int changing_here = 0;  // 1 if this thread is one of them

// While an object exists, its thread may change files and `partial_files`. If a signal is ending
// the process, the constructor does not return.
class Change {
 public:
  Change() {
    ++changing_here;
    ++changing;
    if (!ending) return;
    --changing;
    for (;;) ::pause();
  }
  ~Change() {
    --changing;
    --changing_here;
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
};

// The text that the signal handler prints first. On a terminal it clears the progress line. If it
// is null, the handler prints nothing.
std::atomic<const char*> line_start{""};

void print(const char* text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
}

// Removes the unfinished files. Returns whether there was one.
bool remove_partial_files() {
  bool removed = false;
  for (const auto& file : partial_files)
    if (const char* name = file.load(); name != nullptr) removed = ::unlink(name) == 0 || removed;
  return removed;
}

// Replaces the entry `from` of `partial_files` by `to`. A null pointer is a free entry. If no entry
// is free, the signal handler does not know the new file and leaves it on disk.
void replace_partial(const char* from, const char* to) {
  for (auto& file : partial_files)
    if (const char* expected = from; file.compare_exchange_strong(expected, to)) return;
}

[[noreturn]] void fail(const std::filesystem::path& path, const char* action) {
  throw std::runtime_error(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(errno)));
}

void sync(const std::filesystem::path& opened, int flags, const std::filesystem::path& named) {
  const int descriptor = ::open(opened.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) fail(named, "open for syncing");
  const int status = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  if (status != 0) fail(named, "sync");
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path destination) : destination_(std::move(destination)) {
  // Refuse a folder before the caller spends work on the content. The renaming would otherwise fail
  // only at the end.
  if (is_folder(destination_))
    throw std::runtime_error(
        fmt::format("{}: is a folder, expected the name of a file", destination_.string()));
  std::error_code unknown;  // the creation below reports a folder without permission
  const bool exists = std::filesystem::exists(destination_, unknown);
  in_place_ = exists && !is_file(destination_);
  if (exists && !in_place_ && std::filesystem::is_symlink(destination_))
    destination_ = std::filesystem::canonical(destination_);
  temporary_ = destination_;
  if (in_place_) return;
  [[maybe_unused]] static const int registered = std::at_quick_exit([] { remove_partial_files(); });
  temporary_ += ".partial-" + std::to_string(::getpid());
  const Change change;
  replace_partial(nullptr, temporary_.c_str());
  // Create the file before the caller spends work on the content. The error names the destination.
  const int descriptor = ::open(temporary_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    replace_partial(temporary_.c_str(), nullptr);
    fail(destination_, "create");
  }
  ::close(descriptor);
}

AtomicFile::~AtomicFile() {
  const Change change;
  std::error_code ignored;
  if (!committed_ && !in_place_) std::filesystem::remove(temporary_, ignored);
  if (!in_place_) replace_partial(temporary_.c_str(), nullptr);
}

void AtomicFile::commit(Sync durably) {
  if (in_place_) return;
  if (durably == Sync::yes) sync(temporary_, O_RDWR, destination_);
  {
    const Change change;
    if (::rename(temporary_.c_str(), destination_.c_str()) != 0) fail(destination_, "rename into place");
    committed_ = true;
  }
  if (durably == Sync::no) return;
  const auto folder = destination_.parent_path();
  sync(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY, destination_);
}

// May call only functions that are safe in signal handlers.
extern "C" void end_cleanly(int signal) {
  ending = true;
  // Let other threads finish what they change, for at most 5 s.
  const timespec turn{0, 1'000'000};
  for (int turns = 0; changing > changing_here && turns < 5000; ++turns) ::nanosleep(&turn, nullptr);
  const bool removed = remove_partial_files();
  if (const char* start = line_start; start != nullptr) {
    print(start);
    print(signal == SIGTERM  ? "convoy: ended by SIGTERM"
          : signal == SIGINT ? "convoy: ended by SIGINT"
                             : "convoy: ended by SIGHUP");
    print(removed ? "; no file is left half written\n" : "\n");
  }
  // Remove the files before the default action is restored. timeout(1) and process groups send a
  // signal twice, so with the default action the second signal would end the process at once.
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void end_cleanly_on_signals(bool with_line) {
  if (!with_line)
    line_start = nullptr;
  else if (::isatty(STDERR_FILENO) != 0)
    line_start = "\r\x1b[K";
  struct sigaction action {};
  action.sa_handler = end_cleanly;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction current {};
    ::sigaction(signal, nullptr, &current);
    if (current.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
}

void write_file_atomically(const std::filesystem::path& destination, std::string_view content,
                           AtomicFile::Sync sync) {
  AtomicFile file(destination);
  std::ofstream stream(file.path(), std::ios::binary);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  stream.close();
  if (!stream) fail(destination, "write");
  file.commit(sync);
}

}  // namespace convoy::data
