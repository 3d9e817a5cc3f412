// Shortens tests for tools that make a kernel a hundred times slower (jobs/sanitize_gpu.sh). If
// CONVOY_BRIEF_TESTS is set, tests run the same kernels on fewer shapes and for fewer steps.
#pragma once

#include <cstdlib>

namespace convoy::test {

inline bool brief() {
  static const bool set = std::getenv("CONVOY_BRIEF_TESTS") != nullptr;
  return set;
}

}  // namespace convoy::test
