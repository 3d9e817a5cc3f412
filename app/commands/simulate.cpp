// `convoy simulate`: simulates a placement that a file holds. With --model it simulates the scaling
// of a training, with --jobs the sharing of a device by several jobs.
#include "app/commands/simulate.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/simulate_jobs.h"
#include "app/commands/simulate_training.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "app/json_text.h"
#include "partition/graph/read_text.h"
#include "partition/placement/baselines.h"

namespace convoy::app {

using namespace convoy::partition;

namespace {

void check_limits(const CostModel& cost, const Simulation& simulation, const std::string& file) {
  for (DeviceIndex device = 0; device < cost.device_count(); ++device) {
    const Bytes peak = simulation.use[device].peak_bytes, limit = cost.machine().device(device).memory_limit;
    if (peak > limit)
      throw std::runtime_error(fmt::format("{}: device {} reaches {} bytes, more than its limit of {}", file,
                                           device, peak, limit));
  }
}

// Throws UsageError if a flag was given that has no effect on what is simulated. `mode` is
// "--model" or "--jobs", or empty if a placement is simulated.
void check_mode(const CLI::App& verb, const std::string& mode) {
  for (const CLI::Option* option :
       verb.get_options([](const CLI::Option* given) { return given->count() > 0; })) {
    const std::string name = option->get_name(), group = option->get_group();
    const std::string needed = group == kTrainingGroup ? "--model" : group == kJobsGroup ? "--jobs" : "";
    const bool shared = name == "--json" ||
                        ((name == "--topology" || name == "--profile") && mode != "--jobs") ||
                        (group == kOutputGroup && mode == "--jobs");
    if (!shared && needed != mode)
      throw UsageError(mode.empty() ? fmt::format("{}: goes with {}", name, needed)
                                    : fmt::format("{}: does not go with {}", name, mode));
  }
}

}  // namespace

void run_simulate(const GraphAndMachineFlags& input, const std::string& placement_file, bool ignore_order,
                  const OutputFlags& output) {
  const auto began = std::chrono::steady_clock::now();
  const TaskGraph graph = input.read_graph();
  Placement placement = parse_placement_json(read_text(placement_file), graph, placement_file);
  if (input.devices > 0 && input.devices != placement.devices)
    throw UsageError(
        fmt::format("--devices: found {}, but {} has {}", input.devices, placement_file, placement.devices));
  if (ignore_order) placement.order.clear();
  const Machine machine = input.machine(graph, placement.devices);
  const CostModel cost(graph, machine);
  const Simulation simulation = simulate(cost, placement);
  const std::optional<Nanoseconds> one_device = one_device_time(cost, Units(graph, placement.devices));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const ReportRows rows = placement_rows(cost, simulation, one_device, seconds);
  output.write_files("Simulation of " + placement_file, rows, cost, simulation);
  if (output.json) {
    nlohmann::json summary = placement_summary(cost, simulation, one_device, seconds);
    summary["graph"] = input.graph, summary["placement"] = placement_file;
    fmt::print("{}\n", json_text(summary));
  } else {
    print_rows(rows, cost, simulation);
  }
  check_limits(cost, simulation, placement_file);
}

void add_simulate_command(CLI::App& app) {
  struct Flags {
    GraphAndMachineFlags input;
    OutputFlags output;
    TrainingSimulationFlags training;
    JobsSimulationFlags jobs;
    std::string placement;
    bool ignore_order = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = app.add_subcommand(
      "simulate", "Judge a placement, or predict scaling (--model) or the sharing of a device (--jobs)");
  flags->input.add_to(*verb);
  verb->get_option("--graph")->required(false);
  flags->output.add_to(*verb);
  verb->option_defaults()->group("Placement");
  verb->add_option("--placement", flags->placement, "what `convoy partition --out` writes")
      ->check(not_empty())
      ->type_name("P.json");
  verb->add_flag("--ignore-order", flags->ignore_order,
                 "list scheduling by bottom level instead of the placement's order");
  flags->training.add_to(*verb);
  flags->jobs.add_to(*verb);
  verb->callback([flags, verb] {
    const bool shares = !flags->jobs.jobs.empty(), predicts = !flags->training.model.empty();
    check_mode(*verb, shares ? "--jobs" : predicts ? "--model" : "");
    if (shares) return simulate_jobs(flags->jobs, flags->output, *verb);
    if (predicts) return simulate_training(flags->training, flags->output.json);
    for (const char* flag : {"--graph", "--placement"})
      if (verb->count(flag) == 0)
        throw UsageError(fmt::format("{} is required (or --model, or --jobs)", flag));
    flags->input.topology = flags->training.topology;
    if (flags->training.profiles.size() > 1)
      throw UsageError(fmt::format("--profile: found {} files, expected one with --graph",
                                   flags->training.profiles.size()));
    if (!flags->training.profiles.empty()) flags->input.profile = flags->training.profiles.front();
    flags->input.check_links();
    run_simulate(flags->input, flags->placement, flags->ignore_order, flags->output);
  });
}

}  // namespace convoy::app
