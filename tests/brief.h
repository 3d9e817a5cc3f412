// For tools that slow a kernel down a hundredfold (jobs/sanitize_gpu.sh): with CONVOY_BRIEF_TESTS
// set, tests run every kernel that they would run, on fewer shapes and for fewer steps.
#pragma once

#include <cstdlib>

namespace convoy::test {

inline bool brief() {
  static const bool set = std::getenv("CONVOY_BRIEF_TESTS") != nullptr;
  return set;
}

}  // namespace convoy::test
