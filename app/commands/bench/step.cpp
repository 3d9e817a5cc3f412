#include "app/commands/bench/step.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "app/commands/bench/model_flags.h"
#include "app/commands/commands.h"
#include "app/commands/validators.h"
#include "app/compile/lanes.h"
#include "app/concurrency/lane_choice.h"
#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/execute/session_tools.h"
#include "app/median.h"
#include "app/model/zoo/zoo.h"
#include "app/timing/limited_steps.h"
#include "app/timing/program_times.h"
#include "app/timing/step_times.h"
#include "app/training/rank_setup.h"
#include "app/training/report/bottleneck.h"
#include "app/training/report/configuration_table.h"
#include "comm/make_collectives.h"
#include "comm/placement/environment.h"
#include "kernels/device/gpu_model.h"

namespace convoy::app {
namespace {

struct BenchStepOptions {
  std::string model, tuning_file;
  kernels::Backend backend = kernels::Backend::cpu;
  Precision precision = Precision::fp32;
  std::int64_t batch = 0, size = 0, classes = 0, steps = 20, warmup = 3, threads = 0, members = 1;
  Lanes lanes;
  std::uint64_t memory_limit = 0;
  std::int64_t host_memory = 0;
  bool layers = false, json = false, time_waits = true;
};

RankTimes times_of_rank(const TimedSteps& timed) {
  const double ms = timed.mean();
  return {ms, std::max(ms - timed.exposed_comm_ms, 0.0), timed.exposed_comm_ms, 0};
}

struct InstructionTime {
  std::string layer, kind;
  double ms = 0, flops = 0, bytes = 0;
};

std::vector<InstructionTime> time_instructions(const Program& program, kernels::Backend backend,
                                               std::int64_t steps) {
  const std::vector<double> times = time_program(program, backend, static_cast<int>(steps));
  const auto& instructions = program.instructions();
  std::vector<InstructionTime> result;
  for (std::size_t i = 0; i < instructions.size(); ++i)
    result.push_back({instructions[i].layer, instructions[i].kind, times[i], instructions[i].flops,
                      static_cast<double>(instructions[i].bytes)});
  return result;
}

// The peak rates of a device, which give the least possible time of an operation.
struct Limits {
  double flops, bytes;  // operations and bytes per second
  double ms(double operations, double moved) const {
    return std::max(operations / flops, moved / bytes) * 1e3;
  }
};
std::optional<Limits> limits_of(const BenchStepOptions& options, const std::string& device) {
  const kernels::GpuModel* const model = kernels::find_gpu_model(device);
  if (model == nullptr) return std::nullopt;
  return Limits{options.precision == Precision::bf16   ? model->operations_bf16
                : options.precision == Precision::tf32 ? model->operations_tf32
                                                       : model->operations_fp32,
                model->copied_bytes};
}

void print_layers(const std::vector<InstructionTime>& times, const std::optional<Limits>& limits, bool json) {
  const double total = std::accumulate(times.begin(), times.end(), 0.0,
                                       [](double sum, const InstructionTime& time) { return sum + time.ms; });
  const auto row = [&](const std::string& layer, const std::string& kind, double ms, double flops,
                       double bytes) {
    const double seconds = std::max(ms, 1e-9) * 1e-3;
    // If the limits are unknown, this is NaN, which JSON shows as null.
    const double of_limit = limits ? limits->ms(flops, bytes) / (seconds * 1e3) : std::nan("");
    if (json)
      fmt::print("{}\n", nlohmann::json({{"layer", layer},
                                         {"op", kind},
                                         {"ms", ms},
                                         {"share", ms / total},
                                         {"operations", flops},
                                         {"bytes", bytes},
                                         {"gflops_per_second", flops / seconds * 1e-9},
                                         {"gbytes_per_second", bytes / seconds * 1e-9},
                                         {"share_of_limit", of_limit}})
                             .dump());
    else
      fmt::print("{:<28} {:<28} {:>9.4f} {:>6.1f}% {:>9.3f} {:>9.2f} {:>9.1f} {:>8.1f} {:>7}\n", layer, kind,
                 ms, 100 * ms / total, flops * 1e-9, bytes * 1e-6, flops / seconds * 1e-9,
                 bytes / seconds * 1e-9, limits ? fmt::format("{:.1f}%", 100 * of_limit) : "-");
  };
  if (!json)
    fmt::print("{:<28} {:<28} {:>9} {:>7} {:>9} {:>9} {:>9} {:>8} {:>7}\n", "layer", "op", "ms", "share",
               "GFLOP", "MB", "GFLOP/s", "GB/s", "limit");
  struct Sum {
    double ms = 0, flops = 0, bytes = 0;
  };
  std::map<std::string, Sum> by_kind;
  for (const InstructionTime& time : times) {
    row(time.layer, time.kind, time.ms, time.flops, time.bytes);
    Sum& sum = by_kind[time.kind];
    sum.ms += time.ms, sum.flops += time.flops, sum.bytes += time.bytes;
  }
  for (const auto& [kind, sum] : by_kind) row("all", kind, sum.ms, sum.flops, sum.bytes);
}

StepOptions step_options_of(const BenchStepOptions& options) {
  StepOptions step;
  step.backend = options.backend;
  step.tuning_file = options.tuning_file;
  step.precision = options.precision;
  step.memory_limit = static_cast<std::int64_t>(options.memory_limit);
  step.host_memory = options.host_memory;
  step.time_waits = options.time_waits;
  step.lanes = options.lanes.count;
  step.synchronised_batch_norm = false;
  step.members.clear();
  for (std::int64_t member = 0; member < options.members; ++member) {
    Member& own = step.members.emplace_back();
    own.seed = static_cast<std::uint64_t>(member + 1);
    own.hyperparameters.weight_decay = 5e-5f;
  }
  return step;
}

void print_steps(const BenchStepOptions& options, const TimedSteps& timed, const Bottleneck& bottleneck,
                 const std::vector<RankPlace>& places, const Session& session,
                 const std::optional<LaneChoice>& lanes) {
  const std::int64_t arena_bytes = session.memory().plan().total();
  const MemoryFit& fit = session.steps().fit;
  const std::size_t ranks = places.size();
  const double ms = median(timed.ms);
  // Compute the rate from the mean time, not the median: if other processes share the device, the
  // median may leave out the time that they take.
  const double rate =
      static_cast<double>(options.batch * options.members) * static_cast<double>(ranks) / timed.mean() * 1e3;
  if (options.json) {
    fmt::print("{}\n", nlohmann::json({{"model", options.model},
                                       {"backend", name_of(options.backend)},
                                       {"device", places[0].device},
                                       {"precision", name_of(options.precision)},
                                       {"ranks", ranks},
                                       {"batch", options.batch},
                                       {"members", options.members},
                                       {"size", options.size},
                                       {"ms", ms},
                                       {"ms_mean", timed.mean()},
                                       {"ms_min", *std::ranges::min_element(timed.ms)},
                                       {"ms_max", *std::ranges::max_element(timed.ms)},
                                       {"images_per_second", rate},
                                       {"exposed_comm_ms", bottleneck.communication_ms},
                                       {"limited_by", bottleneck.limit},
                                       {"peak_device_bytes", arena_bytes},
                                       {"recomputed", fit.repeated},
                                       {"expected_ms", fit.step_ms},
                                       {"recomputed_ms", fit.repeated_ms},
                                       {"expected_more_ms", fit.more_ms},
                                       {"slices", fit.slices},
                                       {"copied", fit.copied},
                                       {"host_bytes", fit.host_bytes},
                                       {"lanes", lanes ? lanes->text() : options.lanes.text()},
                                       {"lane_analysis_ms", lanes ? lanes->analysis_ms : 0},
                                       {"loss", timed.last.loss()}})
                           .dump());
    return;
  }
  fmt::print(
      "{} {}x{} batch {}{} {} on {} x {}: {:.3f} ms a step (median), {:.1f} images/s, arena {:.1f} MiB\n",
      options.model, options.size, options.size, options.batch,
      options.members > 1 ? fmt::format(" of {} members", options.members) : "", name_of(options.precision),
      ranks, name_of(options.backend), ms, rate, static_cast<double>(arena_bytes) / (1 << 20));
  if (lanes) fmt::print("lanes: {}\n", lanes->text());
  for (const auto& [name, value] : memory_rows(fit)) fmt::print("{}: {}\n", name, value);
  if (ranks > 1) fmt::print("{}\n", describe(bottleneck, places));
}

void bench_step(BenchStepOptions options) {
  const std::string backend = name_of(options.backend);
  check_belongs("--lanes", options.lanes != Lanes{}, "--backend", backend, {"cuda"});
  check_belongs("--tuning-file", !options.tuning_file.empty(), "--backend", backend, {"cuda"});
  check_belongs("--no-wait-times", !options.time_waits, "--backend", backend, {"cuda"});
  const comm::MpiEnvironment environment(std::chrono::minutes(5), device_of(options.backend));
  const comm::Communicator& ranks = environment.world();
  use_cores(environment, options.threads);
  std::int64_t classes = 0;
  std::unique_ptr<comm::Collectives> collectives;
  std::optional<CompiledSteps> steps;
  std::optional<Session> session;
  run_on_all_ranks(ranks, [&] {
    check_precision(options.backend, options.precision);
    if (options.members > 1 && ranks.size() > 1)
      throw UsageError(fmt::format("--members: found {} ranks, expected one: members are timed on one device",
                                   ranks.size()));
    collectives = comm::make_collectives(options.backend, ranks);
  });
  std::optional<Network> network;
  run_on_all_ranks(ranks, [&] {
    network = make_network({options.model, options.batch, 0, options.size, options.classes});
    classes = network->shape(network->outputs()[0])[1];
    options.size = network->shape(network->input())[2];
  });
  steps = compile_within_limit(*network, step_options_of(options), ranks,
                               {collectives.get(), collectives.get(), nullptr});
  run_on_all_ranks(ranks, [&] {
    session.emplace(std::move(*steps), step_options_of(options),
                    RankGroups{collectives.get(), collectives.get(), nullptr});
  });
  const std::optional<LaneChoice> lanes = choose_lanes(*session, step_options_of(options), ranks);
  fill_batch(*session, classes, ranks.size());
  time_steps(*session, options.warmup);
  const TimedSteps timed = time_steps(*session, options.steps);
  const std::vector<RankTimes> rank_times = gather_rank_times(ranks, times_of_rank(timed));
  const std::vector<RankPlace> places = places_of(environment);
  if (ranks.rank() == 0) print_steps(options, timed, find_bottleneck(rank_times), places, *session, lanes);
  if (!options.layers) return;
  const auto layers = time_instructions(SessionTools(*session).programs().train, options.backend,
                                        std::min<std::int64_t>(options.steps, 5));
  if (ranks.rank() == 0) print_layers(layers, limits_of(options, places[0].device), options.json);
}

}  // namespace

void add_bench_step(CLI::App& bench) {
  auto options = std::make_shared<BenchStepOptions>();
  CLI::App* verb = bench.add_subcommand("step", "Training steps on synthetic input: time, rate, memory");
  const auto add = [verb](const char* flag, auto& value, const char* what, const CLI::Validator& check) {
    return verb->add_option(flag, value, what)->capture_default_str()->check(check);
  };
  add_model_flags(*verb, *options, "images of one rank's step");
  add("--members", options->members, "trainings that one step computes together; the rate is of all of them",
      whole_number(1, 4096))
      ->type_name("N");
  verb->option_defaults()->group("Length");
  add("--steps", options->steps, "timed steps", whole_number(1, 1 << 20));
  add("--warmup", options->warmup, "steps before the timed ones", whole_number(0, 1 << 20));
  verb->option_defaults()->group("Execution");
  add_choice(*verb, "--backend", options->backend, "what runs the kernels");
  add_choice(*verb, "--precision", options->precision, "of products");
  add("--threads", options->threads, "of one rank; 0: the host's cores / its ranks", whole_number(0, 4096))
      ->type_name("T");
  verb->add_option("--memory-limit", options->memory_limit, "of one device, such as 8GiB")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
  verb->add_option("--host-memory", options->host_memory,
                   "of one rank, for activations that wait there under a limit; 0: none")
      ->transform(size_or_zero())
      ->type_name("SIZE");
  add_text(*verb, "--lanes", options->lanes,
           "CUDA: operations that may run side by side, 1 to 8; auto: as measured before the first step")
      ->type_name("N");
  verb->add_option("--tuning-file", options->tuning_file,
                   "CUDA: measured choices of kernels; a run of one rank adds what is missing")
      ->type_name("FILE");
  verb->add_flag("!--no-wait-times", options->time_waits,
                 "CUDA: without the time stamps that exposed_comm_ms is measured by");
  verb->option_defaults()->group("Output");
  verb->add_flag("--layers", options->layers,
                 "time every operation, with NVTX ranges by layer: its share of the step, operations and "
                 "bytes, and how near the GPU's limits it comes if they are known");
  verb->add_flag("--json", options->json, "one JSON object a row");
  verb->callback([options] { bench_step(*options); });
}

}  // namespace convoy::app
