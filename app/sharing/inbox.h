// The folder OUT/inbox, through which another process gives orders to the `convoy share` that runs
// in OUT. Orders are files: NAME.toml has jobs to add, NAME.remove stops the job NAME.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace convoy::app {

// Both throw UsageError if no `convoy share` uses the folder, and leave the locks of runs alone.
void request_jobs(const std::filesystem::path& out, const std::filesystem::path& jobs);
// Also throws UsageError if OUT/share.json names no such job that has not finished.
void request_removal(const std::filesystem::path& out, const std::string& job);

class Inbox {
 public:
  static constexpr const char *kFolder = "inbox", *kReport = "share.json";

  // Makes the folder empty. While this object lives, it holds a lock on the folder, by which others
  // see that somebody reads the orders. The process must hold the RunLock of `out`.
  explicit Inbox(const std::filesystem::path& out);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  struct Order {
    std::filesystem::path file;
    bool removes() const { return file.extension() == ".remove"; }  // the job file.stem()
  };
  std::vector<Order> orders() const;
  // Tells that the order is obeyed.
  static void remove(const Order& order);

 private:
  std::filesystem::path folder_;
  int lock_ = -1;
};

}  // namespace convoy::app
