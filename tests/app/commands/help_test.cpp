// Checks that the help texts of all verbs have the same form.
#include <gtest/gtest.h>

#include <cctype>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "app/commands/commands.h"

namespace convoy::app {
namespace {

std::vector<std::string> help_of(std::vector<std::string> words) {
  words.insert(words.begin(), "convoy");
  words.push_back("--help");
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_command(static_cast<int>(arguments.size()), arguments.data()), 0);
  std::istringstream text(testing::internal::GetCapturedStdout());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

constexpr std::size_t kColumn = 30;  // the column at which descriptions begin

void expect_form(const std::string& line) {
  EXPECT_LE(line.size(), 120u) << line;
  EXPECT_FALSE(line.ends_with(' ')) << line;
  EXPECT_FALSE(std::regex_search(line, std::regex("(TEXT|INT|FLOAT|REQUIRED|Excludes|\\{false\\})"))) << line;
  if (line.size() <= kColumn + 1 || line[kColumn - 1] != ' ' || line[kColumn] == ' ') return;
  // A description begins with a lower-case letter, unless it begins with a name (HDF5, CUDA,
  // Chrome, Nesterov).
  const std::string text = line.substr(kColumn);
  const bool sentence = std::isupper(static_cast<unsigned char>(text[0])) != 0 &&
                        std::islower(static_cast<unsigned char>(text[1])) != 0;
  EXPECT_TRUE(!sentence || text.starts_with("Chrome ") || text.starts_with("Nesterov ")) << line;
}

// Checks the help of a verb, such as `train` in `convoy train`, and of all verbs below it. Returns
// how many verbs these are.
int check_help(const std::vector<std::string>& path) {
  int verbs = 1;
  bool flags = true;
  for (const std::string& line : help_of(path)) {
    if (line == "Subcommands:") flags = false;
    if (flags && line.starts_with(' ')) expect_form(line);
    if (flags || !line.starts_with("  ")) continue;
    EXPECT_LE(line.size(), 120u) << line;
    std::vector<std::string> below = path;
    below.push_back(line.substr(2, line.find(' ', 2) - 2));
    verbs += check_help(below);
  }
  return verbs;
}

TEST(Help, AllVerbsLookAlike) { EXPECT_GE(check_help({}), 16); }

}  // namespace
}  // namespace convoy::app
