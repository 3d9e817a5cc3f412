// Requests predictions for the images in a folder, and for images that are put into it later.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "app/sharing/service/request_queue.h"
#include "app/sharing/service/wake_event.h"
#include "app/training/report/predictions.h"
#include "comm/watchdog/wire.h"

namespace convoy::app {

struct WatcherOptions {
  std::filesystem::path folder;
  std::filesystem::path table;       // the CSV file to which results are appended
  std::vector<std::string> classes;  // the names of the network's classes
  std::size_t top = 5;               // how many classes the table has for each image
  std::size_t most_queued = 64;      // most requests in the queue or in prediction
  // Receives a line about each image that cannot be read.
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

struct FolderCounts {
  std::int64_t predicted = 0;  // images in the table, also from earlier runs
  std::int64_t damaged = 0;    // images that cannot be read
  std::int64_t left_out = 0;   // hidden files, and files that are no images
  std::int64_t waiting = 0;
};

// Watches a folder. Takes JPEG and PNG files that are directly in it; the rules for names are those
// of `convoy predict`. A file is noticed when a writer closes it or when it is moved into the
// folder. Each file is predicted once, even over several runs with the same table. An image that
// could not be read is tried again when it is written again, because it may have been incomplete.
class FolderWatcher {
 public:
  // Starts a thread that watches. `queue` must outlive the watcher. Throws std::runtime_error in
  // one line that names the folder or the table. If the folder is removed later,
  // RequestQueue::fail() gets the error.
  FolderWatcher(WatcherOptions options, RequestQueue& queue);
  ~FolderWatcher();  // requires that the queue holds no request of the watcher

  FolderCounts counts() const;

 private:
  // The state of an image. `changed` means that it was written again while it was queued.
  enum class State : std::uint8_t { waiting, queued, changed, predicted, damaged };

  void run();
  void scan();
  void read_events();
  void notice(const std::string& name);
  void notice_image(const std::string& path);
  void admit();
  void finish(const std::string& path, const Answer& answer);

  const WatcherOptions options_;
  RequestQueue& queue_;
  const WakeEvent wake_;
  const comm::UniqueFd inotify_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;  // guards the fields from table_ to counts_
  PredictionTable table_;
  std::unordered_map<std::string, State> images_;  // the state of each image, by its path
  std::unordered_set<std::string> others_;         // names of all other files that were noticed
  std::deque<std::string> waiting_;
  std::size_t queued_ = 0;
  FolderCounts counts_;
  std::thread thread_;
};

}  // namespace convoy::app
