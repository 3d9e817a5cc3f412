// Tests the file of measured choices. The next run must find them, and a broken file must be
// reported.
#include "kernels/device/tuning.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace convoy::kernels::tuning {
namespace {

class Tuning : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("convoy_tuning_" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override {
    stop();
    std::filesystem::remove_all(folder_);
  }
  std::filesystem::path file() const { return folder_ / "deep" / "tuning.json"; }
  void fill(const std::string& text) const {
    std::filesystem::create_directories(file().parent_path());
    std::ofstream(file()) << text;
  }
  std::filesystem::path folder_;
};

TEST_F(Tuning, KeepsForTheNextRun) {
  use(file(), Mode::measure);
  EXPECT_TRUE(measures());
  EXPECT_EQ(find("a"), std::nullopt);
  keep("a", "one");
  EXPECT_EQ(find("a"), "one");
  save();
  use(file(), Mode::read);
  EXPECT_FALSE(measures());
  EXPECT_EQ(find("a"), "one");
  // Saving writes a new file and renames it. That file must not be left in the folder.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file().parent_path()), {}), 1);
}

// Two runs may measure different things at the same time. The file must keep the results of both.
TEST_F(Tuning, KeepsWhatOthersWroteMeanwhile) {
  use(file(), Mode::measure);
  keep("mine", "one");
  fill(R"({"theirs": "two"})");
  save();
  use(file(), Mode::read);
  EXPECT_EQ(find("mine"), "one");
  EXPECT_EQ(find("theirs"), "two");
}

// In a run of several ranks, every rank only reads the file. A wrong file name must be an error
// then, not count as an empty file.
TEST_F(Tuning, ToBeReadItMustBeThere) {
  EXPECT_THROW(use(file(), Mode::read), std::runtime_error);
  EXPECT_NO_THROW(use(file(), Mode::measure));
}

TEST_F(Tuning, IsWrittenWhereALinkLeads) {
  fill("{}");
  const auto link = folder_ / "link.json";
  std::filesystem::create_symlink(file(), link);
  use(link, Mode::measure);
  keep("a", "one");
  save();
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  use(file(), Mode::read);
  EXPECT_EQ(find("a"), "one");
}

TEST_F(Tuning, OffUntilNamed) {
  EXPECT_FALSE(measures());
  EXPECT_EQ(find("a"), std::nullopt);
  save();
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(Tuning, NamesABrokenFile) {
  for (const char* text : {"", "{", "[1]", R"({"a": 1})"}) {
    fill(text);
    try {
      use(file(), Mode::read);
      FAIL() << text;
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find(file().string()), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace convoy::kernels::tuning
