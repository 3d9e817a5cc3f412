#include "app/commands/commands.h"

#include <gtest/gtest.h>

namespace convoy::app {
namespace {

int run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  return run_command(static_cast<int>(arguments.size()), arguments.data());
}

TEST(Commands, WrongCommandLineExitsWithTwo) {
  EXPECT_EQ(run({"convoy", "fly"}), 2);
  EXPECT_EQ(run({"convoy"}), 2);
  EXPECT_EQ(run({"convoy", "--help"}), 0);
}

}  // namespace
}  // namespace convoy::app
