// Checks what a failed job under mpirun has printed.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/shell.h"

namespace convoy::test {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline void expect_one_line(const Outcome& outcome, const std::vector<std::string>& parts) {
  ASSERT_EQ(outcome.ours().size(), 1u) << outcome.text;
  for (const std::string& part : parts) EXPECT_TRUE(contains(outcome.ours().front(), part)) << outcome.text;
  EXPECT_FALSE(contains(outcome.text, "MPI_ABORT")) << outcome.text;
  EXPECT_FALSE(contains(outcome.text, "finished on")) << outcome.text;
}

}  // namespace convoy::test
