#include "app/sharing/inbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "app/errors.h"
#include "data/atomic_file.h"

namespace convoy::app {
namespace {

namespace fs = std::filesystem;

// Opens the lock file in the folder. A `convoy share` locks it exclusively while it reads the
// orders in this folder. It is a regular file, because NFS does not pass locks of folders on to
// other hosts.
int open_lock(const fs::path& folder, int flags) {
  return ::open((folder / ".lock").c_str(), O_RDWR | O_CLOEXEC | flags, 0600);
}

// Returns whether a `convoy share` reads the orders in the folder. Tries to get a shared lock, so
// that other processes can ask at the same moment.
bool is_read(const fs::path& folder) {
  const int file = open_lock(folder, 0);
  if (file < 0) return false;
  const bool locked = ::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(file);
  return locked;
}

void post(const fs::path& out, const std::string& name, const std::string& text) {
  if (!is_read(out / Inbox::kFolder))
    throw UsageError(fmt::format("--out {}: no convoy share is running there", out.string()));
  data::write_file_atomically(out / Inbox::kFolder / name, text);
}

}  // namespace

void request_jobs(const fs::path& out, const fs::path& jobs) {
  std::ifstream stream(jobs);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  post(out, fmt::format("{}-{}.toml", ::getpid(), now), text);
}

void request_removal(const fs::path& out, const std::string& job) {
  std::ifstream stream(out / Inbox::kReport);
  const auto report = nlohmann::json::parse(stream, nullptr, false);
  const auto runs = [&](const nlohmann::json& one) {
    return one["name"] == job && (one["status"] == "waiting" || one["status"] == "running");
  };
  if (!report.is_object() || std::ranges::none_of(report["jobs"], runs))
    throw UsageError(fmt::format("--remove: found '{}', expected a job that runs in {}", job, out.string()));
  post(out, job + ".remove", "");
}

Inbox::Inbox(const fs::path& out) : folder_(out / kFolder) {
  std::error_code error;  // an order may come while the folder is removed
  fs::remove_all(folder_, error);
  fs::create_directories(folder_);
  lock_ = open_lock(folder_, O_CREAT);
  // Wait for the lock, because is_read() in another process may hold it for a moment. Ignore
  // errors, because no orders come on a file system without locks.
  while (lock_ >= 0 && ::flock(lock_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

Inbox::~Inbox() {
  if (lock_ >= 0) ::close(lock_);
}

std::vector<Inbox::Order> Inbox::orders() const {
  std::vector<Order> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error))
    if (const auto kind = entry.path().extension(); kind == ".remove" || kind == ".toml")
      found.push_back({entry.path()});
  return found;
}

void Inbox::remove(const Order& order) {
  std::error_code error;
  fs::remove(order.file, error);
}

}  // namespace convoy::app
