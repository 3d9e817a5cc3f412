// Manages the folder OUT/inbox, through which another process gives orders to the `convoy share`
// that runs in OUT. Each order is a file. NAME.toml has jobs to add, and NAME.remove stops the job
// NAME.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace convoy::app {

// Orders the `convoy share` that runs in `out` to add the jobs of the file `jobs`. Throws
// UsageError if no `convoy share` runs there. Does not touch the locks of runs (RunLock).
void request_jobs(const std::filesystem::path& out, const std::filesystem::path& jobs);
// Orders the `convoy share` that runs in `out` to stop the job `job`. Throws UsageError if no
// `convoy share` runs there, or if OUT/share.json lists no such job as waiting or running.
void request_removal(const std::filesystem::path& out, const std::string& job);

class Inbox {
 public:
  static constexpr const char *kFolder = "inbox", *kReport = "share.json";

  // Empties the folder, and locks it while this object lives. The lock shows other processes that
  // somebody reads the orders. The process must hold the RunLock of `out`.
  explicit Inbox(const std::filesystem::path& out);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  struct Order {
    std::filesystem::path file;
    // Returns whether the order removes the job `file.stem()`. If not, `file` has jobs to add.
    bool removes() const { return file.extension() == ".remove"; }
  };
  std::vector<Order> orders() const;
  // Deletes the file of an order that has been obeyed.
  static void remove(const Order& order);

 private:
  std::filesystem::path folder_;
  int lock_ = -1;
};

}  // namespace convoy::app
