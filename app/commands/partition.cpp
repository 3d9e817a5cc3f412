// `convoy partition`: places a task graph on devices. `convoy simulate` prints its result with the
// functions of this file.
#include "app/commands/partition.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/graph_and_machine.h"
#include "app/commands/partition_pipeline.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "app/json_text.h"
#include "data/atomic_file.h"
#include "partition/graph/brief.h"
#include "partition/graph/task_graph_json.h"
#include "partition/partition.h"
#include "partition/simulation/chrome_trace.h"

namespace convoy::app {

using namespace convoy::partition;

namespace {

double micros(Nanoseconds time) { return static_cast<double>(time) / 1e3; }

struct PartitionFlags {
  GraphAndMachineFlags input;
  OutputFlags output;
  std::string out, algorithm = "improve", write_graph, pipeline;
  double time_limit = -1;
  // If micro_batches is 0, the number in the graph's file is used, or 16 if the file has none.
  std::int64_t moves = 0, seed = 1, threads = 2, micro_batches = 0;
};

nlohmann::json candidate_summary(const std::vector<Candidate>& candidates) {
  nlohmann::json list = nlohmann::json::array();
  for (const Candidate& candidate : candidates)
    list.push_back({{"algorithm", algorithm_name(candidate.algorithm)},
                    {"makespan_us", micros(candidate.makespan)},
                    {"fits", candidate.fits},
                    {"seconds", candidate.seconds}});
  return list;
}

const char* complete_search_name(CompleteSearch search) {
  switch (search) {
    case CompleteSearch::kNotTried:
      return "not tried";
    case CompleteSearch::kDone:
      return "done";
    case CompleteSearch::kGaveUp:
      break;
  }
  return "gave up";
}

void print_candidates(const PartitionResult& result) {
  fmt::print("\n{:<12} {:>16} {:>10}\n", "algorithm", "makespan µs", "seconds");
  for (const Candidate& candidate : result.candidates)
    fmt::print("{:<12} {:>15} {:>10.3f}{}\n", algorithm_name(candidate.algorithm),
               candidate.fits ? fmt::format("{:.1f}", micros(candidate.makespan)) : "does not fit",
               candidate.seconds, candidate.algorithm == result.algorithm ? "  <- taken" : "");
  if (result.complete_search == CompleteSearch::kGaveUp && !result.optimal)
    fmt::print("\nThe complete search gave up, so a shorter placement may exist.\n");
}

PartitionOptions options_from(const PartitionFlags& flags) {
  PartitionOptions options;
  options.algorithm = algorithm_from(flags.algorithm);
  if (flags.time_limit >= 0) options.time_limit = std::chrono::duration<double>(flags.time_limit);
  if (flags.moves > 0) options.move_limit = flags.moves;
  options.threads = static_cast<unsigned>(flags.threads);
  options.seed = static_cast<std::uint64_t>(flags.seed);
  return options;
}

void report_misfit(const PartitionFlags& flags, const PartitionResult& result) {
  if (flags.output.json)
    fmt::print("{}\n",
               json_text(nlohmann::json{{"graph", flags.input.graph},
                                        {"feasible", false},
                                        {"proven", result.proven},
                                        {"complete_search", complete_search_name(result.complete_search)},
                                        {"reason", result.reason}}));
  throw std::runtime_error(fmt::format(
      "{}: {}: {}", flags.input.graph,
      result.proven ? "does not fit the devices" : "no placement was found that fits, which proves nothing",
      result.reason));
}

void check_pins(const TaskGraph& graph, const GraphAndMachineFlags& input, DeviceIndex devices) {
  for (NodeIndex node = 0; node < graph.node_count(); ++node)
    if (graph.pin(node) >= devices)
      throw std::runtime_error(fmt::format("{}: node {}: pin is {}, expected a device from 0 to {}",
                                           input.graph, graph.label(node), graph.pin(node), devices - 1));
}

void write_graph(const TaskGraph& graph, const PartitionFlags& flags) {
  std::string text;
  try {
    text = task_graph_json(graph);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("--write-graph: {}: {}", flags.input.graph, error.what()));
  }
  data::write_file_atomically(flags.write_graph, text);
}

// Throws UsageError if a flag was given that has no effect on the search.
void check_search(const PartitionFlags& flags, const CLI::App& verb) {
  for (const char* flag : {"--time-limit", "--moves", "--seed"})
    check_belongs(flag, verb.count(flag) > 0, "--algorithm", flags.algorithm, {"improve"});
  if (verb.count("--moves") > 0 && verb.count("--time-limit") > 0)
    throw UsageError(fmt::format("--moves: belongs to a search without --time-limit, found --time-limit {}",
                                 flags.time_limit));
}

void run_partition(const PartitionFlags& flags) {
  const Clock::time_point began = Clock::now();
  flags.input.check_links();
  const TaskGraph graph = flags.input.read_graph();
  const DeviceIndex devices = flags.input.device_count(graph);
  check_pins(graph, flags.input, devices);
  if (!flags.write_graph.empty()) write_graph(graph, flags);
  const Machine machine = flags.input.machine(graph, devices);
  const CostModel cost(graph, machine);
  if (!flags.pipeline.empty())
    return run_pipeline(flags.input.graph, cost, flags.pipeline == "replicated",
                        flags.micro_batches > 0     ? flags.micro_batches
                        : graph.micro_batches() > 0 ? graph.micro_batches()
                                                    : 16,
                        flags.output.json);
  const PartitionResult result = partition_graph(cost, options_from(flags));
  if (!result.placement) report_misfit(flags, result);
  if (!flags.out.empty()) data::write_file_atomically(flags.out, placement_json(graph, *result.placement));
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  const ReportRows rows = placement_rows(cost, result.simulation, result.one_device, seconds);
  flags.output.write_files("Placement of " + flags.input.graph, rows, cost, result.simulation);
  if (flags.output.json) {
    nlohmann::json summary = placement_summary(cost, result.simulation, result.one_device, seconds);
    summary["graph"] = flags.input.graph;
    summary["feasible"] = true;
    summary["memory_floor_bytes"] = result.memory_floor;
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    summary["peak_rss_bytes"] = std::int64_t{usage.ru_maxrss} * 1024;
    summary["optimal"] = result.optimal;
    summary["complete_search"] = complete_search_name(result.complete_search);
    summary["algorithm"] = algorithm_name(result.algorithm);
    summary["candidates"] = candidate_summary(result.candidates);
    summary["moves"] = {{"tried", result.improvement.tried}, {"accepted", result.improvement.accepted}};
    fmt::print("{}\n", json_text(summary));
    return;
  }
  print_rows(rows, cost, result.simulation);
  print_candidates(result);
}

}  // namespace

void OutputFlags::add_to(CLI::App& verb) {
  verb.option_defaults()->group(kOutputGroup);
  verb.add_option("--report", report, "timeline and memory as one HTML page")
      ->check(not_empty())
      ->type_name("FILE.html");
  verb.add_option("--trace", trace, "schedule as Chrome trace JSON")
      ->check(not_empty())
      ->type_name("FILE.json");
  verb.add_flag("--json", json, "one JSON object instead of the table");
}

void OutputFlags::write_files(const std::string& title, const ReportRows& rows, const CostModel& cost,
                              const Simulation& simulation) const {
  if (!report.empty()) data::write_file_atomically(report, report_html(title, rows, cost, simulation));
  if (!trace.empty()) data::write_file_atomically(trace, chrome_trace(cost.graph(), simulation));
}

ReportRows placement_rows(const CostModel& cost, const Simulation& simulation,
                          std::optional<Nanoseconds> one_device, double seconds) {
  const Nanoseconds bound = makespan_lower_bound(cost);
  const auto ratio = [](Nanoseconds a, Nanoseconds b) {
    return b > 0 ? static_cast<double>(a) / static_cast<double>(b) : 1.0;
  };
  ReportRows rows = {
      {"nodes, edges", fmt::format("{}, {}", cost.graph().node_count(), cost.graph().edge_count())},
      {"makespan", fmt::format("{:.1f} µs", micros(simulation.makespan))},
      {"lower bound", fmt::format("{:.1f} µs", micros(bound))},
      {"ratio", fmt::format("{:.4f}", ratio(simulation.makespan, bound))},
      {"speed-up over one device", one_device ? fmt::format("{:.3f}", ratio(*one_device, simulation.makespan))
                                              : "none: nodes are pinned to several devices"},
      {"cut bytes", fmt::format("{}", simulation.cut_bytes)}};
  rows.emplace_back("seconds", fmt::format("{:.3f}", seconds));
  return rows;
}

void print_rows(ReportRows rows, const CostModel& cost, const Simulation& simulation) {
  const double whole = std::max(1.0, static_cast<double>(simulation.makespan)) / 100;
  for (DeviceIndex device = 0; device < cost.device_count(); ++device) {
    const Bytes limit = cost.machine().device(device).memory_limit;
    const DeviceUtilisation& use = simulation.use[device];
    const std::string& kind = cost.machine().device(device).kind;
    rows.emplace_back(
        fmt::format("device {}{}", device, kind.empty() ? "" : fmt::format(" ({})", brief(kind))),
        fmt::format("{} nodes, busy {:.1f} %, exposed transfer {:.1f} %, peak {} bytes, limit {}", use.nodes,
                    static_cast<double>(use.busy) / whole, static_cast<double>(use.exposed_transfer) / whole,
                    use.peak_bytes, limit == kUnlimited ? "none" : fmt::format("{}", limit)));
  }
  for (const auto& [name, value] : rows) fmt::print("{:<26} {}\n", name, value);
}

nlohmann::json placement_summary(const CostModel& cost, const Simulation& simulation,
                                 std::optional<Nanoseconds> one_device, double seconds) {
  const Nanoseconds bound = makespan_lower_bound(cost);
  nlohmann::json devices = nlohmann::json::array();
  for (DeviceIndex device = 0; device < cost.device_count(); ++device) {
    const DeviceUtilisation& use = simulation.use[device];
    const Bytes limit = cost.machine().device(device).memory_limit;
    devices.push_back({{"nodes", use.nodes},
                       {"busy_us", micros(use.busy)},
                       {"idle_us", micros(use.idle)},
                       {"exposed_transfer_us", micros(use.exposed_transfer)},
                       {"resident_bytes", use.resident_bytes},
                       {"peak_bytes", use.peak_bytes},
                       {"limit_bytes", limit == kUnlimited ? nlohmann::json() : nlohmann::json(limit)}});
  }
  nlohmann::json speedup;  // null if nodes are pinned to several devices
  if (one_device)
    speedup = simulation.makespan > 0
                  ? static_cast<double>(*one_device) / static_cast<double>(simulation.makespan)
                  : 1.0;
  return {{"nodes", cost.graph().node_count()},
          {"edges", cost.graph().edge_count()},
          {"devices", std::move(devices)},
          {"makespan_us", micros(simulation.makespan)},
          {"lower_bound_us", micros(bound)},
          {"one_device_us", one_device ? nlohmann::json(micros(*one_device)) : nlohmann::json()},
          {"ratio", bound > 0 ? static_cast<double>(simulation.makespan) / static_cast<double>(bound) : 1.0},
          {"speedup", std::move(speedup)},
          {"cut_bytes", simulation.cut_bytes},
          {"seconds", seconds}};
}

void add_partition_command(CLI::App& app) {
  auto flags = std::make_shared<PartitionFlags>();
  CLI::App* verb = app.add_subcommand("partition", "Place a task graph on devices");
  flags->input.add_to(*verb);
  verb->add_option("--topology", flags->input.topology,
                   "the machine: links of each pair, devices of different kinds")
      ->check(not_empty())
      ->type_name("FILE");
  verb->add_option(
          "--profile", flags->input.profile,
          "times of --graph model:, measured by bench step --layers --json; without: an estimate for "
          "the topology's device")
      ->check(not_empty())
      ->type_name("FILE");
  flags->output.add_to(*verb);
  verb->add_option("--out", flags->out, "placement to write")->check(not_empty())->type_name("P.json");
  verb->add_option("--write-graph", flags->write_graph, "the graph as our JSON")
      ->check(not_empty())
      ->type_name("F.json");
  verb->option_defaults()->group("Pipeline");
  auto* pipeline =
      verb->add_option("--pipeline", flags->pipeline,
                       "stages that work on several micro-batches at a time, instead of one placement")
          ->check(one_of({"straight", "replicated"}))
          ->type_name("straight|replicated");
  verb->add_option("--micro-batches", flags->micro_batches,
                   "in a batch; the graph is one micro-batch; default: mbsInBatch of Piper's files, else 16")
      ->check(whole_number(1, 1 << 20))
      ->needs(pipeline)
      ->type_name("M");
  verb->option_defaults()->group("Search");
  verb->add_option("--algorithm", flags->algorithm, "improve: the best of the others, then a local search")
      ->check(one_of({"improve", "pardnn", "heft", "m-etf", "metis", "contiguous", "one-device"}))
      ->capture_default_str();
  verb->add_option("--time-limit", flags->time_limit,
                   "seconds for all of the search; default: work that takes a core about 2 seconds")
      ->check(number_in("[0, 1e9]"))
      ->type_name("S");
  verb->add_option("--moves", flags->moves, "moves of each local search instead of a time: results repeat")
      ->check(whole_number(1))
      ->type_name("N");
  verb->add_option("--seed", flags->seed, "of the local search")
      ->check(whole_number(0))
      ->capture_default_str();
  verb->add_option("--threads", flags->threads, "algorithms, then local searches, at a time")
      ->check(whole_number(1, 64))
      ->capture_default_str();
  for (const char* flag :
       {"--out", "--report", "--trace", "--algorithm", "--time-limit", "--moves", "--contention"})
    pipeline->excludes(verb->get_option(flag));
  verb->callback([flags, verb] {
    check_search(*flags, *verb);
    run_partition(*flags);
  });
}

}  // namespace convoy::app
