// Parses flags of `convoy train` for tests.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "app/commands/train_flags.h"
#include "app/training/train_options.h"

namespace convoy::app {

using Words = std::vector<std::string>;

inline TrainOptions parse(Words words) {
  CLI::App app;
  TrainOptions options;
  add_train_flags(app, options);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return options;
}

// Returns the error message of parsing and checking the flags, or an empty text if the flags are
// accepted.
inline std::string error_of(const Words& words, int ranks = 1) {
  try {
    check_train_options(parse(words), ranks);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

inline Words with(const Words& more, Words words = {"--model", "lenet", "--data", "d.h5", "--out", "o",
                                                    "--epochs", "3", "--global-batch", "64"}) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace convoy::app
