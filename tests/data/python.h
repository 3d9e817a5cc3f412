// Runs the Python scripts of tests/data. They make files, and print what other programs read from
// them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace convoy::data::testing {

inline bool python_has(const std::string& module) {
  return std::system(("/usr/bin/python3 -c 'import " + module + "' 2>/dev/null").c_str()) == 0;
}

inline void run_python(const std::string& script, const std::filesystem::path& folder,
                       const std::string& more = "") {
  const std::string command =
      "/usr/bin/python3 -W ignore " CONVOY_DATA_TESTS "/" + script + " '" + folder.string() + "' " + more;
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

}  // namespace convoy::data::testing
