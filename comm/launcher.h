// What the launcher (mpirun, srun) says of this process in its environment, readable before MPI_Init.
#pragma once

#include <optional>

namespace convoy::comm {

struct LauncherHint {
  const char* variable = nullptr;  // the environment variable that told the world's size
  int world_size = 1;
  std::optional<int> local_rank;  // among this host's ranks
};

// Nothing when no launcher's variables are set. Throws std::runtime_error naming a variable that is not a
// number.
std::optional<LauncherHint> launcher_hint();

}  // namespace convoy::comm
