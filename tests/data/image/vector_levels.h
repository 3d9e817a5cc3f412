// Lists the vector instruction sets (levels) that this machine can run.
#pragma once

#include <vector>

#include "data/image/vector_level.h"

namespace convoy::data::testing {

inline std::vector<VectorLevel> vector_levels() {
  std::vector<VectorLevel> levels;
  for (const VectorLevel level : {VectorLevel::portable, VectorLevel::avx2, VectorLevel::avx512})
    if (level <= best_vector_level()) levels.push_back(level);
  return levels;
}

}  // namespace convoy::data::testing
