#include "app/training/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>

namespace convoy::app {
namespace {

namespace fs = std::filesystem;

std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("host {}, pid {}", host.data(), ::getpid());
}

// Returns the text that the holder of the lock wrote, in parentheses. Returns an empty text if
// there is none yet.
std::string holder_in(const fs::path& path) {
  std::string holder;
  std::getline(std::ifstream(path) >> std::ws, holder);
  return holder.empty() ? "" : fmt::format(" ({})", holder);
}

}  // namespace

bool holds_a_run(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "summary.json", error) || fs::exists(folder / "members.csv", error)) return true;
  if (const auto bytes = fs::file_size(folder / "metrics.jsonl", error); !error && bytes > 0) return true;
  const fs::directory_iterator checkpoints(folder / "checkpoint", error);
  return !error && std::any_of(begin(checkpoints), end(checkpoints),
                               [](const auto& entry) { return entry.path().extension() == ".h5"; });
}

RunLock::RunLock(const fs::path& folder, int (*lock)(int, int)) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw std::runtime_error(fmt::format("{}: cannot make the folder: {}", folder.string(), error.message()));
  }
  const fs::path path = folder / ".lock";
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0)
    throw std::runtime_error(fmt::format("{}: cannot write: {}", folder.string(), std::strerror(errno)));
  const int status = (lock != nullptr ? lock : ::flock)(file_, LOCK_EX | LOCK_NB);
  if (status != 0 && errno == EWOULDBLOCK) {
    ::close(file_);
    throw std::runtime_error(
        fmt::format("--out {}: found another run at work there{}, expected a folder of its own",
                    folder.string(), holder_in(path)));
  }
  // Write who holds the lock, for the message of a run that is refused. Ignore errors, because the
  // lock works without this text.
  const std::string holder = this_process() + "\n";
  if (::ftruncate(file_, 0) == 0) [[maybe_unused]]
    const auto written = ::write(file_, holder.data(), holder.size());
}

RunLock::~RunLock() { ::close(file_); }

}  // namespace convoy::app
