#include "app/sharing/service/folder_watcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "data/convert/catalogue.h"

namespace convoy::app {
namespace {

namespace fs = std::filesystem;

comm::UniqueFd watch(const fs::path& folder) {
  comm::UniqueFd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  if (inotify.get() < 0 || ::inotify_add_watch(inotify.get(), folder.c_str(), kEvents) < 0)
    throw std::runtime_error(
        fmt::format("{}: cannot watch the folder: {}", folder.string(), std::strerror(errno)));
  return inotify;
}

}  // namespace

FolderWatcher::FolderWatcher(WatcherOptions options, RequestQueue& queue)
    : options_(std::move(options)),
      queue_(queue),
      inotify_(watch(options_.folder)),
      table_(PredictionTable::Appended(), options_.table, "path", options_.classes,
             std::min(options_.top, options_.classes.size())) {
  for (const std::string& path : table_.earlier()) images_[path] = State::predicted;
  counts_.predicted = std::ssize(table_.earlier());
  thread_ = std::thread([this] { run(); });
}

FolderWatcher::~FolderWatcher() {
  stopping_ = true;
  wake_.signal();
  thread_.join();
}

void FolderWatcher::run() {
  try {
    scan();
    while (!stopping_) {
      admit();
      std::array<pollfd, 2> waits{{{wake_.fd(), POLLIN, 0}, {inotify_.get(), POLLIN, 0}}};
      ::poll(waits.data(), waits.size(), -1);
      wake_.clear();
      read_events();
    }
  } catch (...) {
    queue_.fail(std::current_exception());
  }
}

void FolderWatcher::scan() {
  std::vector<std::string> names;
  std::error_code error;
  const fs::directory_iterator entries(options_.folder, error);
  if (error)
    throw std::runtime_error(
        fmt::format("{}: cannot read the folder: {}", options_.folder.string(), error.message()));
  for (const fs::directory_entry& entry : entries)
    if (std::error_code ignored; !entry.is_directory(ignored)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  for (const std::string& name : names) notice(name);
}

void FolderWatcher::read_events() {
  alignas(inotify_event) std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) return;
    for (const char* at = buffer.data(); at < buffer.data() + got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof *event + event->len;
      if ((event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) != 0)
        throw std::runtime_error(
            fmt::format("{}: the watched folder was removed or renamed", options_.folder.string()));
      if ((event->mask & IN_Q_OVERFLOW) != 0)
        scan();
      else if ((event->mask & IN_ISDIR) == 0 && event->len > 0)
        notice(event->name);
    }
  }
}

void FolderWatcher::notice(const std::string& name) {
  const std::string path = options_.folder / name;
  const std::optional<std::string> unread = data::unread_image_kind(name);
  if (!unread && !data::is_hidden(name) && data::is_read_image(name)) return notice_image(path);
  {
    const std::lock_guard lock(mutex_);
    if (!others_.insert(name).second) return;
    const bool damaged = unread && !data::is_hidden(name);
    ++(damaged ? counts_.damaged : counts_.left_out);
    if (!damaged) return;
  }
  options_.warn(fmt::format("{}: expected JPEG or PNG, found {}", path, *unread));
}

void FolderWatcher::notice_image(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = images_.try_emplace(path, State::waiting);
  State& state = found->second;
  if (state == State::queued) state = State::changed;
  if (state == State::damaged) --counts_.damaged;
  if (!is_new && state != State::damaged) return;
  state = State::waiting;
  waiting_.push_back(path);
}

void FolderWatcher::admit() {
  std::vector<Request> requests;
  {
    const std::lock_guard lock(mutex_);
    for (; queued_ < options_.most_queued && !waiting_.empty(); ++queued_) {
      Request& request = requests.emplace_back();
      request.origin = Request::Origin::folder;
      request.path = std::move(waiting_.front());
      request.top = options_.top;
      request.reply = [this, path = request.path](const Answer& answer) { finish(path, answer); };
      images_[request.path] = State::queued;
      waiting_.pop_front();
    }
  }
  for (Request& request : requests) queue_.push(std::move(request));
}

void FolderWatcher::finish(const std::string& path, const Answer& answer) {
  bool damaged = false;
  {
    const std::lock_guard lock(mutex_);
    --queued_;
    State& state = images_[path];
    if (answer.error.empty()) {
      table_.add(path, answer.classes);
      table_.flush();
      ++counts_.predicted;
      state = State::predicted;
    } else if (state == State::changed) {
      state = State::waiting;
      waiting_.push_back(path);
    } else {
      ++counts_.damaged;
      state = State::damaged;
      damaged = true;
    }
  }
  if (damaged) options_.warn(answer.error);
  wake_.signal();
}

FolderCounts FolderWatcher::counts() const {
  const std::lock_guard lock(mutex_);
  FolderCounts counts = counts_;
  counts.waiting = std::ssize(waiting_) + static_cast<std::int64_t>(queued_);
  return counts;
}

}  // namespace convoy::app
