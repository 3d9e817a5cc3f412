#include "comm/launcher.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

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

}  // namespace

std::optional<LauncherHint> launcher_hint() {
  struct Variables {
    const char *size, *local_rank;
  };
  // Open MPI's mpirun; PMIx-less MPICH-style launchers; srun's own variables of a step.
  static constexpr std::array<Variables, 3> kLaunchers{
      {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
       {"PMI_SIZE", "MPI_LOCALRANKID"},
       {"SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"}}};
  for (const auto& [size, local_rank] : kLaunchers)
    if (const auto world = number_in(size)) return LauncherHint{size, *world, number_in(local_rank)};
  return std::nullopt;
}

}  // namespace convoy::comm
