#include "data/atomic_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <vector>

namespace convoy::data {
namespace {

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const auto destination = std::filesystem::path(testing::TempDir()) / "atomic_file_test.txt";
  std::filesystem::remove(destination);
  {
    AtomicFile abandoned(destination);
    std::ofstream(abandoned.path()) << "half";
  }
  EXPECT_FALSE(std::filesystem::exists(destination));
  write_file_atomically(destination, "whole");
  std::ifstream stream(destination);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), "whole");
}

TEST(AtomicFile, AFolderIsRefusedBeforeTheWork) {
  EXPECT_THROW(AtomicFile{testing::TempDir()}, std::runtime_error);
}

TEST(AtomicFile, AMissingFolderIsNamedBeforeTheWork) {
  try {
    const AtomicFile file(std::filesystem::path("nowhere") / "file.onnx");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "nowhere/file.onnx: cannot create: No such file or directory");
  }
}

// An output path may be a link, for example to the newest of several files. It must stay a link. It
// may also be /dev/stdout, which must stay a device, even if root could replace it.
TEST(AtomicFile, ALinkStaysALinkAndADeviceADevice) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "atomic_file_links";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "there");
  std::ofstream(folder / "there" / "file") << "old";
  std::filesystem::create_symlink("there/file", folder / "link");
  std::filesystem::create_symlink("/dev/null", folder / "null");
  write_file_atomically(folder / "link", "new");
  write_file_atomically(folder / "null", "nowhere");
  { AtomicFile abandoned(folder / "null"); }
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "null"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  std::ifstream stream(folder / "there" / "file");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "there"), {}), 1);
  std::filesystem::remove_all(folder);
}

void write_until_a_signal(const std::filesystem::path& folder, int signal) {
  ::signal(signal, SIG_DFL);
  end_cleanly_on_signals();
  write_file_atomically(folder / "whole", "whole");
  const AtomicFile first(folder / "first");
  const AtomicFile second(folder / "second");
  for (const AtomicFile* file : {&first, &second}) std::ofstream(file->path()) << "half";
  ::raise(signal);
}

TEST(AtomicFile, ASignalLeavesNothingBehind) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "atomic_file_signals";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const auto& [signal, name] : {std::pair(SIGINT, "SIGINT"), {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}})
    EXPECT_EXIT(write_until_a_signal(folder, signal), testing::KilledBySignal(signal),
                std::string("convoy: ended by ") + name + "; no file is left half written\n");
  EXPECT_TRUE(std::filesystem::exists(folder / "whole"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

// Other threads may create files while a signal ends the process.
TEST(AtomicFile, ASignalLeavesNothingOfManyThreads) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "atomic_file_threads";
  const auto write_and_end = [&] {
    ::signal(SIGTERM, SIG_DFL);
    end_cleanly_on_signals(false);
    std::atomic<int> written = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0;; ++i) {
          write_file_atomically(folder / fmt::format("{}-{}", t, i % 20), "whole", AtomicFile::Sync::no);
          ++written;
        }
      });
    while (written < 200) std::this_thread::yield();
    ::raise(SIGTERM);
  };
  for (int turn = 0; turn < 10; ++turn) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    EXPECT_EXIT(write_and_end(), testing::KilledBySignal(SIGTERM), "^$");
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      EXPECT_EQ(entry.path().string().find(".partial"), std::string::npos) << entry.path();
  }
  std::filesystem::remove_all(folder);
}

TEST(AtomicFile, ASignalWithoutAnUnfinishedFileSaysNothingOfFiles) {
  const auto raise = [](bool with_line) {
    ::signal(SIGTERM, SIG_DFL);
    end_cleanly_on_signals(with_line);
    ::raise(SIGTERM);
  };
  EXPECT_EXIT(raise(true), testing::KilledBySignal(SIGTERM), "^convoy: ended by SIGTERM\n$");
  EXPECT_EXIT(raise(false), testing::KilledBySignal(SIGTERM), "^$");
}

TEST(AtomicFile, AnIgnoredSignalStaysIgnored) {
  const auto old = ::signal(SIGHUP, SIG_IGN);
  EXPECT_EXIT(
      {
        end_cleanly_on_signals();
        ::raise(SIGHUP);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
  ::signal(SIGHUP, old);
}

TEST(AtomicFile, NamesThePlaceThatCannotBeWritten) {
  try {
    write_file_atomically("/proc/no/such/folder/file", "x");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("/proc/no/such/folder/file"), std::string::npos);
  }
}

}  // namespace
}  // namespace convoy::data
