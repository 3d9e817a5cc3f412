#include "app/commands/bench_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/commands/commands.h"
#include "app/model/zoo/zoo.h"
#include "app/runtime/session.h"
#include "app/training/rank_setup.h"
#include "comm/environment.h"
#include "kernels/device/philox.h"

namespace convoy::app {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchStepOptions {
  std::string model, backend = "cpu", precision = "fp32";
  std::int64_t batch = 0, size = 224, classes = 0, steps = 20, warmup = 3, threads = 0;
  bool layers = false, json = false;
};

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

kernels::Backend parse_backend(const BenchStepOptions& options) {
  if (options.precision != "fp32")
    throw UsageError(
        fmt::format("--precision {}: the {} backend computes in fp32", options.precision, options.backend));
  if (options.backend == "cuda") kernels::throw_no_backend(kernels::Backend::cuda);
  return options.backend == "reference" ? kernels::Backend::reference : kernels::Backend::cpu;
}

void fill_batch(Session& session, const BenchStepOptions& options, std::int64_t classes) {
  const std::int64_t pixels = options.batch * 3 * options.size * options.size;
  for (std::int64_t i = 0; i < pixels; ++i)
    session.memory().images()[i] =
        2 * kernels::uniform(kernels::philox(1, static_cast<std::uint64_t>(i)).word[0]) - 1;
  for (std::int64_t i = 0; i < options.batch; ++i)
    session.memory().labels()[i] = static_cast<std::int32_t>(
        kernels::philox(2, static_cast<std::uint64_t>(i)).word[0] % static_cast<std::uint64_t>(classes));
  session.control().valid = static_cast<std::int32_t>(options.batch);
  session.control().learning_rate = 1e-3f;
}

struct InstructionTime {
  std::string layer, kind;
  double ms = 0, flops = 0, bytes = 0;
};

// Every instruction timed by itself, the median of the steps; the sum exceeds a step by the clock's own cost.
std::vector<InstructionTime> time_instructions(Session& session, std::int64_t steps) {
  const auto& instructions = session.train_program().instructions();
  std::vector<std::vector<double>> times(instructions.size());
  for (std::int64_t step = 0; step < steps; ++step)
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const auto start = Clock::now();
      instructions[i].launch(nullptr);
      times[i].push_back(ms_since(start));
    }
  std::vector<InstructionTime> result;
  for (std::size_t i = 0; i < instructions.size(); ++i)
    result.push_back({instructions[i].layer, instructions[i].kind, median(times[i]), instructions[i].flops,
                      static_cast<double>(instructions[i].bytes)});
  return result;
}

void print_layers(const std::vector<InstructionTime>& times, bool json) {
  const double total = std::accumulate(times.begin(), times.end(), 0.0,
                                       [](double sum, const InstructionTime& time) { return sum + time.ms; });
  const auto row = [&](const std::string& layer, const std::string& kind, double ms, double flops,
                       double bytes) {
    const double seconds = std::max(ms, 1e-9) * 1e-3;
    if (json)
      fmt::print("{}\n", nlohmann::json({{"layer", layer},
                                         {"op", kind},
                                         {"ms", ms},
                                         {"share", ms / total},
                                         {"gflops", flops / seconds * 1e-9},
                                         {"gbytes_per_second", bytes / seconds * 1e-9}})
                             .dump());
    else
      fmt::print("{:<28} {:<28} {:>9.3f} {:>6.1f}% {:>9.1f} {:>8.1f}\n", layer, kind, ms, 100 * ms / total,
                 flops / seconds * 1e-9, bytes / seconds * 1e-9);
  };
  if (!json)
    fmt::print("{:<28} {:<28} {:>9} {:>7} {:>9} {:>8}\n", "layer", "op", "ms", "share", "GFLOP/s", "GB/s");
  std::map<std::string, InstructionTime> by_kind;
  for (const InstructionTime& time : times) {
    row(time.layer, time.kind, time.ms, time.flops, time.bytes);
    InstructionTime& sum = by_kind[time.kind];
    sum.ms += time.ms, sum.flops += time.flops, sum.bytes += time.bytes;
  }
  for (const auto& [kind, sum] : by_kind) row("all", kind, sum.ms, sum.flops, sum.bytes);
}

void bench_step(const BenchStepOptions& options) {
  const kernels::Backend backend = parse_backend(options);
  const comm::MpiEnvironment environment;
  const comm::Communicator& ranks = environment.world();
  use_cores(ranks, options.threads);
  const std::int64_t classes = options.classes > 0 ? options.classes : options.size > 64 ? 1000 : 10;
  const Network network =
      make_network(options.model, {options.batch, 3, options.size, options.size}, static_cast<int>(classes));
  SessionOptions session_options;
  session_options.backend = backend;
  session_options.synchronised_batch_norm = false;
  session_options.optimizer.momentum = 0.9f;
  session_options.optimizer.weight_decay = 5e-5f;
  const auto collectives = comm::make_mpi_collectives(ranks);
  Session session(network, session_options, *collectives);
  fill_batch(session, options, classes);
  session.control().global_valid = static_cast<std::int32_t>(options.batch * ranks.size());
  StepMetrics metrics;
  for (std::int64_t step = 0; step < options.warmup; ++step) metrics = session.train_step();
  std::vector<double> times;
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const auto start = Clock::now();
    metrics = session.train_step();
    times.push_back(ms_since(start));
  }
  const double ms = median(times);
  const double rate = static_cast<double>(options.batch * ranks.size()) / ms * 1e3;
  if (ranks.rank() == 0) {
    if (options.json)
      fmt::print("{}\n", nlohmann::json({{"model", options.model},
                                         {"backend", options.backend},
                                         {"precision", options.precision},
                                         {"ranks", ranks.size()},
                                         {"batch", options.batch},
                                         {"size", options.size},
                                         {"ms", ms},
                                         {"ms_min", *std::ranges::min_element(times)},
                                         {"ms_max", *std::ranges::max_element(times)},
                                         {"images_per_second", rate},
                                         {"peak_device_bytes", session.memory().bytes()},
                                         {"loss", metrics.loss()}})
                             .dump());
    else
      fmt::print("{} {}x{} batch {} on {} x {}: {:.2f} ms a step, {:.1f} images/s, arena {:.1f} MiB\n",
                 options.model, options.size, options.size, options.batch, ranks.size(), options.backend, ms,
                 rate, static_cast<double>(session.memory().bytes()) / (1 << 20));
  }
  if (options.layers) {
    const auto layers = time_instructions(session, std::min<std::int64_t>(options.steps, 5));
    if (ranks.rank() == 0) print_layers(layers, options.json);
  }
}

}  // namespace

void add_bench_step(CLI::App& bench) {
  auto options = std::make_shared<BenchStepOptions>();
  CLI::App* verb = bench.add_subcommand("step", "Training steps on synthetic input: time, rate, memory");
  verb->add_option("--model", options->model, "Network of the zoo")->required();
  verb->add_option("--batch", options->batch, "Images of one rank's step")
      ->required()
      ->check(CLI::PositiveNumber);
  verb->add_option("--size", options->size, "Pixels a side")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  verb->add_option("--classes", options->classes, "Classes; default 1000 above 64 pixels, else 10");
  verb->add_option("--backend", options->backend)
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda", "reference"}));
  verb->add_option("--precision", options->precision)
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "tf32", "bf16"}));
  verb->add_option("--steps", options->steps, "Timed steps")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  verb->add_option("--warmup", options->warmup, "Steps before the timed ones")->capture_default_str();
  verb->add_option("--threads", options->threads, "Threads of one rank; default: all of its cores");
  verb->add_flag("--layers", options->layers, "Time every operation");
  verb->add_flag("--json", options->json, "One JSON object a row");
  verb->callback([options] { bench_step(*options); });
}

}  // namespace convoy::app
