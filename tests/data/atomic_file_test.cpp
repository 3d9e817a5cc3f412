#include "data/atomic_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

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
