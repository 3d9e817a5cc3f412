// Says whether tests must be short. If CONVOY_BRIEF_TESTS is set, they run the same kernels on
// fewer shapes and for fewer steps. Tools that make kernels a hundred times slower need this
// (jobs/sanitize_gpu.sh).
#pragma once

#include <cstdlib>

namespace convoy::test {

inline bool brief() {
  static const bool set = std::getenv("CONVOY_BRIEF_TESTS") != nullptr;
  return set;
}

}  // namespace convoy::test
