// Reads what the launcher (mpirun, srun) says about this process in environment variables. This
// works before MPI_Init.
#pragma once

#include <optional>
#include <string>

namespace convoy::comm {

struct LauncherHint {
  const char* variable = nullptr;  // the environment variable with the number of ranks
  int world_size = 1;
  std::optional<int> rank;        // rank among all ranks of the job
  std::optional<int> local_rank;  // rank among the ranks of this host
};

// Returns nothing if no launcher's variables are set. Throws std::runtime_error naming a variable
// that is not a number.
std::optional<LauncherHint> launcher_hint();

// Prints "convoy: MESSAGE" on standard error once on each host, for errors that all processes meet
// before MPI is initialised, such as a wrong command line. The caller must end the process
// afterwards. Processes that do not print return a moment later, because a launcher ends the job as
// soon as the first process fails.
void print_once_before_mpi(const std::string& message);

}  // namespace convoy::comm
