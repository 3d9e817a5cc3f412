// Tests that a prediction service finds the images in a folder that it watches. A thread answers
// the requests by the content of the files.
#include "app/sharing/service/folder_watcher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "tests/app/training/checkpoint/checkpoint_fixture.h"

namespace convoy::app {
namespace {

using namespace std::chrono_literals;

class FolderWatcherOf : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    std::filesystem::create_directories(folder_ / "in");
  }
  void TearDown() override {
    stop();
    FolderTest::TearDown();
  }
  void start(std::size_t most_queued = 64) {
    queue_.emplace();
    WatcherOptions options{folder_ / "in", folder_ / "out.csv", {"cat", "dog, big"}, 1, most_queued};
    options.warn = [this](const std::string& message) {
      if (message.find("pause.webp") != std::string::npos) {
        paused_ = 1;
        paused_.notify_all();
        paused_.wait(1);
      }
      const std::lock_guard lock(mutex_);
      warnings_.push_back(message);
    };
    watcher_.emplace(std::move(options), *queue_);
    predicting_ = true;
    predictor_ = std::thread([this] { predict(); });
  }
  void stop() {
    predicting_ = false;
    if (predictor_.joinable()) predictor_.join();
    if (!watcher_) return;
    queue_->close("the end");
    watcher_.reset();
    queue_.reset();
  }
  // Answers requests by the text in their files. The first class is probable for a file with "cat"
  // and improbable for others. A file with "bad" is refused as damaged.
  void predict() {
    while (predicting_) {
      std::vector<Request> batch;
      try {
        batch = queue_->next_batch(8, 5ms);
      } catch (const std::runtime_error& error) {
        failure_ = error.what();
        return;
      }
      for (const Request& one : batch) {
        const auto left = static_cast<std::size_t>(&batch.back() - &one) + 1;
        most_waiting_ = std::max(most_waiting_, left + queue_->waiting());
        const std::string content = content_of(one.path);
        if (before_answer_) before_answer_(one.path);
        if (content == "bad")
          queue_->refuse(one, one.path + ": damaged");
        else
          queue_->answer(one, std::vector<float>{content == "cat" ? 0.75f : 0.25f, 0.5f});
      }
    }
  }
  void write(const std::string& name, const std::string& content = "cat") {
    write_content(folder_ / "in" / name, content);
  }
  bool wait_for(std::int64_t predicted, std::int64_t damaged) {
    const auto limit = std::chrono::steady_clock::now() + 20s;
    const auto reached = [&] {
      const FolderCounts counts = watcher_->counts();
      return counts.predicted >= predicted && counts.damaged == damaged && counts.waiting == 0;
    };
    while (!reached() && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(2ms);
    return reached();
  }
  // Waits until there are `count` warnings, and returns them. After wait_for() a warning may still
  // be missing, because an image is counted before its warning is given.
  std::multiset<std::string> warnings(std::size_t count) {
    const auto limit = std::chrono::steady_clock::now() + 20s;
    for (;; std::this_thread::sleep_for(2ms)) {
      const std::lock_guard lock(mutex_);
      if (warnings_.size() >= count || std::chrono::steady_clock::now() > limit)
        return {warnings_.begin(), warnings_.end()};
    }
  }
  std::multiset<std::string> rows() const {
    std::istringstream lines(content_of(folder_ / "out.csv"));
    std::multiset<std::string> found;
    for (std::string line; std::getline(lines, line);) found.insert(line);
    return found;
  }
  std::string row(const std::string& name, const std::string& rest) const {
    return (folder_ / "in" / name).string() + rest;
  }
  std::string header() const { return "path,class_1,probability_1"; }

  std::optional<RequestQueue> queue_;
  std::optional<FolderWatcher> watcher_;
  std::thread predictor_;
  std::atomic<bool> predicting_ = false;
  std::atomic<int> paused_ = 0;  // 1 while the file pause.webp keeps the watcher waiting
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  std::string failure_;
  std::function<void(const std::string& path)> before_answer_;
  std::size_t most_waiting_ = 0;
};

TEST_F(FolderWatcherOf, FilesAreTakenThatAreThereOrCome) {
  write("1.png");
  write("2.JPG", "dog");
  start();
  ASSERT_TRUE(wait_for(2, 0));
  write("3.jpeg");
  write(".4.png.part");
  std::filesystem::rename(folder_ / "in/.4.png.part", folder_ / "in/4.png");
  ASSERT_TRUE(wait_for(4, 0));
  EXPECT_EQ(rows(), (std::multiset<std::string>{header(), row("1.png", ",cat,0.75"),
                                                row("2.JPG", ",\"dog, big\",0.5"), row("3.jpeg", ",cat,0.75"),
                                                row("4.png", ",cat,0.75")}));
}

TEST_F(FolderWatcherOf, EachFileIsPredictedOnceAlsoInALaterRun) {
  write("1.png");
  start();
  ASSERT_TRUE(wait_for(1, 0));
  write("1.png", "dog");
  write("2.png");
  ASSERT_TRUE(wait_for(2, 0));
  stop();
  write("3.png");
  start();
  ASSERT_TRUE(wait_for(3, 0));
  EXPECT_EQ(watcher_->counts().predicted, 3);
  EXPECT_EQ(rows(), (std::multiset<std::string>{header(), row("1.png", ",cat,0.75"),
                                                row("2.png", ",cat,0.75"), row("3.png", ",cat,0.75")}));
}

TEST_F(FolderWatcherOf, DamagedFilesAreNamedAndTriedAgainWhenTheyAreWritten) {
  write("1.png", "bad");
  write("2.webp");
  start();
  ASSERT_TRUE(wait_for(0, 2));
  EXPECT_EQ(warnings(2),
            (std::multiset<std::string>{row("1.png", ": damaged"),
                                        row("2.webp", ": expected JPEG or PNG, found WebP images")}));
  write("2.webp");
  write("1.png", "dog");
  ASSERT_TRUE(wait_for(1, 1));
  EXPECT_EQ(rows(), (std::multiset<std::string>{header(), row("1.png", ",\"dog, big\",0.5")}));
  EXPECT_EQ(warnings(2).size(), 2u);
}

// The watcher may see a file that its writer has not finished. The answer to the incomplete file
// must not count.
TEST_F(FolderWatcherOf, AFileThatIsWrittenWhileItIsReadIsReadAgain) {
  write("1.png", "bad");
  before_answer_ = [this](const std::string& path) {
    before_answer_ = nullptr;
    write_content(path, "cat");
    std::this_thread::sleep_for(50ms);
  };
  start();
  ASSERT_TRUE(wait_for(1, 0));
  EXPECT_EQ(warnings(0).size(), 0u);
  EXPECT_EQ(rows().size(), 2u);
}

TEST_F(FolderWatcherOf, WhatIsNoImageIsLeftOut) {
  write("notes.txt");
  write(".hidden.png");
  std::filesystem::create_directories(folder_ / "in/folder.png");
  write("folder.png/inside.png");
  start();
  write("1.png");
  ASSERT_TRUE(wait_for(1, 0));
  std::filesystem::create_directories(folder_ / "in/later.png");
  write("2.png");
  ASSERT_TRUE(wait_for(2, 0));
  EXPECT_EQ(watcher_->counts().left_out, 2);
  EXPECT_EQ(rows().size(), 3u);
}

TEST_F(FolderWatcherOf, AFullFolderFillsTheQueueOnlyToItsLimit) {
  for (int i = 0; i < 300; ++i) write(std::to_string(i) + ".png");
  start(10);
  ASSERT_TRUE(wait_for(300, 0));
  EXPECT_EQ(rows().size(), 301u);
  EXPECT_LE(most_waiting_, 10u);
  EXPECT_GT(most_waiting_, 5u);
}

// The system keeps at most 16,384 events of a folder that were not read, and drops further ones.
// After that the watcher must read the whole folder again.
TEST_F(FolderWatcherOf, NoFileIsLostInAFlood) {
  start();
  constexpr int kFiles = 18'000;
  write("0.png");
  write("pause.webp");
  paused_.wait(0);
  for (int i = 1; i < kFiles; ++i)
    std::filesystem::create_hard_link(folder_ / "in/0.png", folder_ / ("in/.hidden" + std::to_string(i)));
  for (int i = 1; i < kFiles; ++i)
    std::filesystem::rename(folder_ / ("in/.hidden" + std::to_string(i)),
                            folder_ / ("in/" + std::to_string(i) + ".png"));
  paused_ = 2;
  paused_.notify_all();
  EXPECT_TRUE(wait_for(kFiles, 1)) << watcher_->counts().predicted;
  EXPECT_EQ(std::ssize(rows()), kFiles + 1);
}

TEST_F(FolderWatcherOf, AFolderThatIsMissingIsAnError) {
  std::filesystem::remove_all(folder_ / "in");
  EXPECT_EQ(error_of([&] { start(); }),
            (folder_ / "in").string() + ": cannot watch the folder: No such file or directory");
  queue_.reset();
  std::filesystem::create_directories(folder_ / "in");
  write("1.png");
  start();
  ASSERT_TRUE(wait_for(1, 0));
  std::filesystem::rename(folder_ / "in", folder_ / "moved");
  predictor_.join();
  EXPECT_EQ(failure_, (folder_ / "in").string() + ": the watched folder was removed or renamed");
}

}  // namespace
}  // namespace convoy::app
