// What the launcher (mpirun, srun) says of this process in its environment, readable before MPI_Init.
#pragma once

#include <optional>
#include <string>

namespace convoy::comm {

struct LauncherHint {
  const char* variable = nullptr;  // the environment variable that told the world's size
  int world_size = 1;
  std::optional<int> rank;        // in the world
  std::optional<int> local_rank;  // among this host's ranks
};

// Nothing when no launcher's variables are set. Throws std::runtime_error naming a variable that is not a
// number.
std::optional<LauncherHint> launcher_hint();

// Prints "convoy: MESSAGE" on standard error for what all processes of a job find before MPI is up, such as a
// wrong command line: once on each host, not once for each process. The processes that keep silent return a
// moment later, because a launcher ends the whole job with the first process that fails. To be followed by
// the end of the process.
void print_once_before_mpi(const std::string& message);

}  // namespace convoy::comm
