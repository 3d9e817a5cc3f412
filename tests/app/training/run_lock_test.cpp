// Tests that two runs cannot use one folder, in which they would destroy each other's results. A
// run that has died must not keep its folder locked.
#include "app/training/run_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <string>

namespace convoy::app {
namespace {

class Lock : public testing::Test {
 protected:
  Lock()
      : folder_(std::filesystem::path(testing::TempDir()) / ("convoy_lock_" + std::to_string(::getpid()))) {}
  ~Lock() override { std::filesystem::remove_all(folder_); }

  // Starts another process, which holds the lock until it is killed.
  pid_t holder() const {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const RunLock lock(folder_ / "run");
      if (::write(ends[1], "x", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    for (const int end : ends) ::close(end);
    return pid;
  }
  std::string refusal() const {
    try {
      const RunLock lock(folder_ / "run");
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }

  std::filesystem::path folder_;
};

TEST_F(Lock, RefusesASecondRunUntilTheFirstHasEndedHoweverItDid) {
  const pid_t first = holder();
  const std::string text = refusal();
  EXPECT_EQ(text.rfind("--out " + (folder_ / "run").string() + ": found another run at work there (host ", 0),
            0u)
      << text;
  EXPECT_NE(text.find(", pid " + std::to_string(first) + "), expected a folder of its own"),
            std::string::npos)
      << text;
  ::kill(first, SIGKILL);
  ::waitpid(first, nullptr, 0);
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(refusal(), "") << "released by the one before";
}

TEST_F(Lock, AFileSystemWithoutLocksDoesNotKeepARunFromItsWork) {
  for (const auto& without :
       {+[](int, int) { return errno = ENOLCK, -1; }, +[](int, int) { return errno = ENOSYS, -1; },
        +[](int, int) { return errno = EOPNOTSUPP, -1; }})
    EXPECT_NO_THROW(RunLock(folder_ / "run", without));
}

TEST_F(Lock, WhatARunLeavesIsSeen) {
  const auto run = folder_ / "run";
  EXPECT_FALSE(holds_a_run(run)) << "no folder";
  std::filesystem::create_directories(run / "checkpoint");
  const auto write = [](const std::filesystem::path& file, const char* text) { std::ofstream(file) << text; };
  write(run / "manifest.json", "{}");
  write(run / "metrics.jsonl", "");
  write(run / ".lock", "x");
  write(run / "checkpoint" / "notes", "x");
  EXPECT_FALSE(holds_a_run(run)) << "nothing but what comes before the first step";
  for (const char* left :
       {"summary.json", "metrics.jsonl", "checkpoint/step-00000001.h5", "checkpoint/best.h5"}) {
    write(run / left, "{}");
    EXPECT_TRUE(holds_a_run(run)) << left;
    std::filesystem::remove(run / left);
  }
}

TEST_F(Lock, AFolderThatCannotBeMadeIsNamed) {
  try {
    const RunLock lock("/proc/no/such");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("/proc/no/such: cannot make the folder: ", 0), 0u)
        << error.what();
  }
}

}  // namespace
}  // namespace convoy::app
