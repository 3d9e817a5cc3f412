#include "app/timing/program_times.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "app/median.h"
#include "app/timing/launch_timer.h"

namespace convoy::app {

std::vector<double> time_program(const Program& program, kernels::Backend backend, int repeats) {
  if (backend == kernels::Backend::cuda) run_in_named_ranges(program);
  std::vector<kernels::Launch> launches;
  for (const Instruction& instruction : program.instructions()) launches.push_back(instruction.launch);
  const std::unique_ptr<LaunchTimer> timer = make_launch_timer(backend, std::move(launches));
  std::vector<std::vector<double>> times(program.instructions().size());
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const std::vector<LaunchTime> round = timer->round();
    for (std::size_t i = 0; i < times.size(); ++i) times[i].push_back(round[i].passed);
  }
  std::vector<double> medians;
  std::ranges::transform(times, std::back_inserter(medians), median);
  return medians;
}

}  // namespace convoy::app
