// Tests that a folder always holds a whole checkpoint: after full disks, kills in the middle of a
// save, damaged files, and restarts from an older step.
#include "app/training/checkpoint/folder.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <set>
#include <thread>

#include "tests/app/training/checkpoint/checkpoint_fixture.h"

namespace convoy::app {
namespace {

class Folder : public FolderTest {
 protected:
  std::set<std::string> names() const {
    std::set<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      result.insert(entry.path().filename().string());
    }
    return result;
  }
};

using Names = std::set<std::string>;

TEST_F(Folder, KeepsTheLastAndTheBest) {
  CheckpointFolder checkpoints(folder_, 2);
  EXPECT_EQ(checkpoints.latest(), std::nullopt);
  for (const std::int64_t step : {10, 20, 30, 40}) checkpoints.save(example_state(step), step == 20);
  EXPECT_EQ(names(), (Names{"step-00000030.h5", "step-00000040.h5", "best.h5"}));
  EXPECT_EQ(checkpoints.latest(), folder_ / "step-00000040.h5");
  expect_same(load_checkpoint(checkpoints.best()), example_state(20));
  checkpoints.save(example_state(50), true);
  expect_same(load_checkpoint(checkpoints.best()), example_state(50));
  EXPECT_EQ(names(), (Names{"step-00000040.h5", "step-00000050.h5", "best.h5"}));
}

TEST_F(Folder, SavingTheSameStepTwiceIsNoTrouble) {
  CheckpointFolder checkpoints(folder_, 1);
  checkpoints.save(example_state(10), true);
  checkpoints.save(example_state(10), true);
  EXPECT_EQ(names(), (Names{"step-00000010.h5", "best.h5"}));
}

TEST_F(Folder, StepsOfNineDigitsSortByNumber) {
  CheckpointFolder checkpoints(folder_, 2);
  checkpoints.save(example_state(99999999), false);
  checkpoints.save(example_state(100000000), false);
  EXPECT_EQ(checkpoints.latest(), folder_ / "step-100000000.h5");
}

TEST_F(Folder, IgnoresAndRemovesLeftOversAndNothingElse) {
  for (const char* name : {"step-00000099.h5.partial-123", "best.h5.partial-7", "notes.txt", "step-12.h5",
                           "step-0000000x.h5", "my-step-00000001.h5"}) {
    write_content(folder_ / name, "x");
  }
  CheckpointFolder checkpoints(folder_, 1);
  EXPECT_EQ(checkpoints.latest(), std::nullopt);
  checkpoints.save(example_state(10), false);
  EXPECT_EQ(checkpoints.latest(), folder_ / "step-00000010.h5");
  EXPECT_EQ(names(), (Names{"notes.txt", "step-12.h5", "step-0000000x.h5", "my-step-00000001.h5",
                            "step-00000010.h5"}));
}

TEST_F(Folder, ClearsCheckpointsAndNothingElse) {
  CheckpointFolder checkpoints(folder_, 2);
  for (const std::int64_t step : {10, 20}) checkpoints.save(example_state(step), step == 10);
  for (const char* name : {"step-00000099.h5.partial-123", "notes.txt", "my-step-00000001.h5"})
    write_content(folder_ / name, "x");
  checkpoints.clear();
  EXPECT_EQ(names(), (Names{"notes.txt", "my-step-00000001.h5"}));
}

TEST_F(Folder, PassesOverADamagedCheckpoint) {
  CheckpointFolder checkpoints(folder_, 3);
  for (const std::int64_t step : {10, 20}) checkpoints.save(example_state(step), false);
  write_content(folder_ / "step-00000020.h5", content_of(folder_ / "step-00000020.h5").substr(0, 3000));
  EXPECT_EQ(checkpoints.latest(), folder_ / "step-00000010.h5");
  write_content(folder_ / "step-00000010.h5", "");
  const auto message = error_of([&] { checkpoints.latest(); });
  EXPECT_EQ(message.rfind((folder_ / "step-00000020.h5").string() + ": is cut short", 0), 0u) << message;
}

// If the newest checkpoint cannot be read for the moment, a run must not go back to an older one.
TEST_F(Folder, DoesNotPassOverACheckpointThatCannotBeRead) {
  CheckpointFolder checkpoints(folder_, 3);
  checkpoints.save(example_state(10), false);
  const auto newest = folder_ / "step-00000020.h5";
  std::filesystem::create_symlink(newest, newest);
  const auto message = error_of([&] { checkpoints.latest(); });
  EXPECT_EQ(message.rfind(newest.string() + ": cannot be read: Too many levels of symbolic links", 0), 0u)
      << message;
}

TEST_F(Folder, StepsOfAnAbandonedRunDoNotCrowdOutNewOnes) {
  CheckpointFolder checkpoints(folder_, 1);
  checkpoints.save(example_state(200), false);
  // The next save is of a run that has gone back, for example to step 100 of best.h5. So the
  // checkpoint of step 200 is of no use.
  checkpoints.save(example_state(110), false);
  EXPECT_EQ(names(), Names{"step-00000110.h5"});
}

TEST_F(Folder, FolderThatCannotBeMadeIsNamed) {
  write_content(folder_ / "file", "");
  const auto path = folder_ / "file" / "checkpoint";
  EXPECT_EQ(error_of([&] { CheckpointFolder(path, 1); }),
            path.string() + ": cannot make the folder: Not a directory");
}

TEST_F(Folder, FolderThatVanishesIsNamed) {
  CheckpointFolder checkpoints(folder_, 1);
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(error_of([&] { checkpoints.save(example_state(1), false); }),
            (folder_ / "step-00000001.h5").string() + ": cannot create: No such file or directory");
}

CheckpointState large_state(std::int64_t step) {
  auto state = example_state(step);
  state.parameters.push_back(ramp("large", {1 << 18}, 0));  // 1 MiB
  return state;
}

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_;
};

// Saves step 10. Then tries to save step 20 while the object made by `fill` makes the disk full.
// That must fail with `reason`, and the checkpoints of step 10 must stay whole.
template <typename Fill>
void expect_survival_of_full_disk(const std::filesystem::path& folder, const std::string& reason,
                                  const Fill& fill) {
  CheckpointFolder checkpoints(folder, 2);
  checkpoints.save(example_state(10), true);
  std::string message;
  testing::internal::CaptureStderr();
  {
    [[maybe_unused]] const auto full = fill();
    message = error_of([&] { checkpoints.save(large_state(20), true); });
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "HDF5 must not print its stack";
  EXPECT_EQ(message, (folder / "step-00000020.h5").string() + ": cannot write: " + reason);
  EXPECT_FALSE(std::filesystem::exists(folder / "step-00000020.h5"));
  ASSERT_EQ(checkpoints.latest(), folder / "step-00000010.h5");
  expect_same(load_checkpoint(*checkpoints.latest()), example_state(10));
  expect_same(load_checkpoint(checkpoints.best()), example_state(10));
  checkpoints.save(large_state(30), true);
  expect_same(load_checkpoint(*checkpoints.latest()), large_state(30));
}

TEST_F(Folder, FileSizeLimitLeavesThePreviousCheckpointWhole) {
  expect_survival_of_full_disk(folder_, "File too large", [] { return FileSizeLimit(1 << 19); });
}

// Mounts a file system of 2 MiB at the path while the object exists.
class SmallDisk {
 public:
  explicit SmallDisk(std::filesystem::path path)
      : path_(std::move(path)), mounted_(mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=2m") == 0) {}
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  std::filesystem::path path_;
  bool mounted_;
};

struct Ballast {
  explicit Ballast(std::filesystem::path path) : path(std::move(path)) {
    write_content(this->path, std::string(std::size_t{3} << 19, 'x'));
  }
  ~Ballast() { std::filesystem::remove(path); }
  std::filesystem::path path;
};

TEST_F(Folder, FullDiskLeavesThePreviousCheckpointWhole) {
  const SmallDisk disk(folder_);
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small file system needs root";
  expect_survival_of_full_disk(folder_, "No space left on device",
                               [&] { return Ballast(folder_ / "ballast"); });
}

TEST_F(Folder, KilledAtAnyMomentLeavesAWholeCheckpoint) {
  CheckpointFolder checkpoints(folder_, 1);
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  checkpoints.save(large_state(0), true);
  const auto one_save = Clock::now() - began;
  std::int64_t step = 0;
  for (int sixths = 1; sixths <= 24 || (step == 0 && sixths <= 240); ++sixths) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (std::int64_t next = step + 1;; ++next) checkpoints.save(large_state(next), true);
    }
    std::this_thread::sleep_for(one_save * sixths / 6);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const auto latest = checkpoints.latest();
    ASSERT_TRUE(latest.has_value());
    const auto state = load_checkpoint(*latest);
    EXPECT_GE(state.step, step);
    step = state.step;
    expect_same(state, large_state(step));
    expect_same(load_checkpoint(checkpoints.best()), large_state(load_checkpoint(checkpoints.best()).step));
  }
  EXPECT_GT(step, 0) << "no child lived long enough to save: the test shows nothing";
}

}  // namespace
}  // namespace convoy::app
