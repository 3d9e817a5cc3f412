#include "comm/placement/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "comm/watchdog/diagnosis.h"
#include "comm/watchdog/host_election.h"

namespace convoy::comm {
namespace {

std::optional<int> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  if (const auto [stop, error] = std::from_chars(text, end, value); error != std::errc{} || stop != end)
    throw std::runtime_error(fmt::format("{}={}: expected a number from the launcher", variable, text));
  return value;
}

// Returns the local rank, the rank among the ranks of this host. Launchers that set PMI_SIZE
// (Hydra, Cray PALS, srun with a PMI plugin) put it in different variables.
std::optional<int> any_local_rank() {
  for (const char* variable : {"MPI_LOCALRANKID", "PMI_LOCAL_RANK", "PALS_LOCAL_RANKID", "SLURM_LOCALID"})
    if (const auto local = number_in(variable)) return local;
  return std::nullopt;
}

}  // namespace

std::optional<LauncherHint> launcher_hint() {
  struct Variables {
    const char *size, *rank, *local_rank;
  };
  // The variables of Open MPI's mpirun, MVAPICH2, MPICH-style launchers without PMIx, and a step of
  // srun.
  static constexpr std::array<Variables, 4> kLaunchers{
      {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"},
       {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK"},
       {"PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID"},
       {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"}}};
  for (const auto& [size, rank, local_rank] : kLaunchers)
    if (const auto world = number_in(size)) {
      const auto local = number_in(local_rank);
      return LauncherHint{size, *world, number_in(rank), local ? local : any_local_rank()};
    }
  return std::nullopt;
}

void print_once_before_mpi(const std::string& message) {
  bool launched = false;
  try {
    const auto hint = launcher_hint();
    launched = hint && hint->world_size > 1;
    // Ignore a variable that is not a number: this function is called to report another error.
  } catch (const std::runtime_error&) {
  }
  if (!launched) return print_lines({message});
  // All processes of a job on one host have the same parent, the launcher's daemon. The object is
  // static, so that the process that has won the election stays the winner until it ends
  // (HostElection).
  static const HostElection election(fmt::format("launch-{}", ::getppid()));
  if (election.won()) print_lines({message});
  // A launcher ends the job when the first process ends. So wait until the winner has printed. The
  // winner stays longest, so that a process that starts late does not win and print the message
  // again.
  std::this_thread::sleep_for(std::chrono::milliseconds(election.won() ? 500 : 200));
}

}  // namespace convoy::comm
