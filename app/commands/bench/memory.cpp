#include "app/commands/bench/memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "app/commands/bench/model_flags.h"
#include "app/commands/validators.h"
#include "app/compile/fit_memory.h"
#include "app/compile/repeated_runs.h"
#include "app/compile/step_choices.h"
#include "app/errors.h"
#include "app/execute/session.h"
#include "app/median.h"
#include "app/model/zoo/zoo.h"
#include "app/timing/limited_steps.h"
#include "app/timing/step_times.h"
#include "app/training/rank_setup.h"
#include "app/training/report/configuration_table.h"
#include "app/training/train_options.h"
#include "comm/placement/environment.h"
#include "comm/single_rank.h"
#include "partition/memory/recompute_baselines.h"

namespace convoy::app {
namespace {

struct BenchMemoryOptions {
  std::string model, tuning_file;
  kernels::Backend backend = kernels::Backend::cpu;
  Precision precision = Precision::fp32;
  std::int64_t batch = 0, size = 0, classes = 0, steps = 20, warmup = 5, threads = 0, lanes = kDefaultLanes;
  std::int64_t host_memory = 0;
  bool json = false;
};

// The memory limits to measure, as fractions of the memory that a step takes without a limit.
constexpr double kShares[] = {0.9, 0.75, 0.5, 0.33, 0.25};

StepOptions step_options_of(const BenchMemoryOptions& options) {
  StepOptions step;
  step.backend = options.backend;
  step.precision = options.precision;
  step.lanes = static_cast<int>(options.lanes);
  step.tuning_file = options.tuning_file;
  step.host_memory = options.host_memory;
  step.synchronised_batch_norm = false;
  step.members[0].hyperparameters.weight_decay = 5e-5f;
  return step;
}

class MemoryBench {
 public:
  MemoryBench(const BenchMemoryOptions& options, const Network& network, std::int64_t classes)
      : options_(options),
        step_(step_options_of(options)),
        classes_(classes),
        steps_(compile_steps(network, step_, groups_)),
        node_ms_(node_ms_of(steps_, step_, groups_)),
        link_(host_link_of(step_)),
        fitter_(steps_, step_, {}, node_ms_, link_),
        model_(step_model(*steps_.train, node_ms_)),
        blocks_(model_) {}

  void run() {
    if (!options_.json)
      fmt::print("{:<40} {:>12} {:>8} {:>10} {:>6} {:>12} {:>9} {:>9} {:>10} {:>10}\n", "method", "memory",
                 "of all", "recomputed", "slices", "on the host", "expected", "measured", "ms", "images/s");
    measure("everything kept", *steps_.train, 0);
    const int count = static_cast<int>(std::ssize(blocks_.blocks()));
    compare("batch norms again", partition::run_again(model_, batch_norms()));
    compare("checkpoint every block", partition::checkpoint_blocks(model_, blocks_, 1));
    const int root = static_cast<int>(std::lround(std::sqrt(count)));
    compare(fmt::format("checkpoint every {} blocks", root),
            partition::checkpoint_blocks(model_, blocks_, root));
    compare_copies("vDNN, all", copied(false));
    compare_copies("vDNN, inputs of convolutions", copied(true));
    for (const double share : kShares)
      plan(fmt::format("plan within {:.0f} %", 100 * share),
           static_cast<std::int64_t>(share * static_cast<double>(all_bytes_)));
    measure("plan within the least", fitter_.least());
    measure("everything kept, once more", *steps_.train, 0);
  }

 private:
  std::vector<int> batch_norms() const {
    std::vector<int> found;
    for (int i = 0; i < std::ssize(steps_.train->graph.nodes); ++i)
      if (steps_.train->graph.nodes[static_cast<std::size_t>(i)].is<BatchNormForward>()) found.push_back(i);
    return found;
  }

  // Returns the tensors that a schedule may copy to host memory: those that forward computes and
  // backward reads. With `of_convolutions`, only those that a forward convolution reads.
  std::vector<int> copied(bool of_convolutions) const {
    std::vector<char> chosen(model_.tensor_bytes.size(), 0), read(model_.tensor_bytes.size(), 0);
    for (std::size_t i = 0; i < model_.operations.size(); ++i)
      for (const int tensor : model_.operations[i].inputs) {
        const auto at = static_cast<std::size_t>(tensor);
        if (model_.operations[i].backward) read[at] = 1;
        if (!of_convolutions || steps_.train->graph.nodes[i].is<Conv2dForward>()) chosen[at] = 1;
      }
    std::vector<int> tensors;
    for (std::size_t at = 0; at < chosen.size(); ++at)
      // Scales and shifts of batch norms, and sums, are no inputs of a layer in Rhu's sense.
      if (chosen[at] && read[at] && model_.copyable[at] &&
          (!of_convolutions || steps_.train->graph.tensors[at].shape.rank() == 4))
        tensors.push_back(static_cast<int>(at));
    return tensors;
  }

  // Measures two schedules that copy tensors to host memory while their layer runs, as Rhu et al.
  // do ("vDNN", MICRO 2016). "ahead" copies them back during an earlier convolution of backward,
  // "on demand" when they are needed.
  void compare_copies(const std::string& name, const std::vector<int>& tensors) {
    const partition::StepSchedule once = single_runs(model_);
    const partition::HostCopies copies(model_, once, tensors, link_);
    if (const std::int64_t bytes = partition::host_bytes(model_, copies.on_demand());
        bytes > link_.host_bytes) {
      if (!options_.json)
        fmt::print("{:<40} {:>12}   needs more --host-memory\n", name,
                   format_bytes(static_cast<std::uint64_t>(bytes)));
      return;
    }
    std::vector<char> convolutions;
    for (const Node& node : steps_.train->graph.nodes)
      convolutions.push_back(node.is<Conv2dBackwardWeights>() ? 1 : 0);
    compare(name + ", ahead", copies.ahead_of(convolutions, 1));
    compare(name + ", on demand", copies.on_demand());
  }

  // Measures a schedule of another method. Then measures Convoy's own plan with the bytes of that
  // schedule as its limit, so that the two times can be compared.
  void compare(const std::string& name, const partition::StepSchedule& schedule) {
    const std::int64_t bytes =
        measure(name, with_schedule(*steps_.train, schedule, step_.backend, reuse_delay_of(step_)),
                partition::expected_ms(model_, schedule, link_) - step_ms());
    if (bytes < all_bytes_) plan("  plan within as much", bytes);
  }

  void plan(const std::string& name, std::int64_t limit) {
    if (const std::optional<MemoryFitter::Fitted> fitted = fitter_.within(limit))
      measure(name, *fitted);
    else if (!options_.json)
      fmt::print("{:<40} {:>12}   needs more\n", name, format_bytes(static_cast<std::uint64_t>(limit)));
  }

  void measure(const std::string& name, const MemoryFitter::Fitted& fitted) {
    measure(name, fitted.train, fitted.more_ms, fitted.slices,
            fitted.evaluate ? *fitted.evaluate : steps_.evaluate);
  }
  std::int64_t measure(const std::string& name, const CompiledGraph& train, double more_ms) {
    return measure(name, train, more_ms, 1, steps_.evaluate);
  }

  // Runs and times the step on the device. Returns the bytes of memory that the step reserves.
  std::int64_t measure(const std::string& name, const CompiledGraph& train, double more_ms, int slices,
                       const CompiledGraph& evaluate) {
    const auto recomputed = std::ranges::count_if(train.graph.nodes, &Node::recompute);
    Session session(CompiledSteps(train, evaluate, step_), step_, groups_);
    fill_batch(session, classes_, 1);
    time_steps(session, options_.warmup);
    const TimedSteps timed = time_steps(session, options_.steps);
    const std::int64_t bytes = session.memory().plan().total();
    if (all_bytes_ == 0) all_bytes_ = bytes, all_ms_ = timed.mean();
    const double expected = 100 * more_ms / std::max(step_ms(), 1e-9);
    const double more = 100 * (timed.mean() / all_ms_ - 1);
    const double rate = static_cast<double>(options_.batch) / timed.mean() * 1e3;
    const double share = static_cast<double>(bytes) / static_cast<double>(all_bytes_);
    if (options_.json)
      fmt::print("{}\n", nlohmann::json({{"model", options_.model},
                                         {"batch", options_.batch},
                                         {"size", options_.size},
                                         {"precision", name_of(options_.precision)},
                                         {"method", name},
                                         {"bytes", bytes},
                                         {"share", share},
                                         {"recomputed", recomputed},
                                         {"slices", slices},
                                         {"host_bytes", train.host_bytes},
                                         {"expected_percent", expected},
                                         {"measured_percent", more},
                                         {"ms", timed.mean()},
                                         {"ms_median", median(timed.ms)},
                                         {"images_per_second", rate}})
                             .dump());
    else
      fmt::print("{:<40} {:>12} {:>6.1f} % {:>10} {:>6} {:>12} {:>+7.1f} % {:>+7.1f} % {:>10.3f} {:>10.1f}\n",
                 name, format_bytes(static_cast<std::uint64_t>(bytes)), 100 * share, recomputed, slices,
                 format_bytes(static_cast<std::uint64_t>(train.host_bytes)), expected, more, timed.mean(),
                 rate);
    std::fflush(stdout);
    return bytes;
  }

  double step_ms() const { return std::accumulate(node_ms_.begin(), node_ms_.end(), 0.0); }

  const BenchMemoryOptions& options_;
  const StepOptions step_;
  const std::int64_t classes_;
  comm::SingleRank rank_;
  const RankGroups groups_{&rank_, &rank_, nullptr};
  const CompiledSteps steps_;  // compiled without a memory limit
  const std::vector<double> node_ms_;
  const partition::HostLink link_;
  const MemoryFitter fitter_;
  const partition::StepModel model_;
  const partition::StepBlocks blocks_;
  // The bytes of the first measured step, which has no limit. 0 until that step is measured.
  std::int64_t all_bytes_ = 0;
  double all_ms_ = 0;
};

void bench_memory(BenchMemoryOptions options) {
  const std::string backend = name_of(options.backend);
  check_belongs("--lanes", options.lanes != kDefaultLanes, "--backend", backend, {"cuda"});
  check_belongs("--tuning-file", !options.tuning_file.empty(), "--backend", backend, {"cuda"});
  check_precision(options.backend, options.precision);
  const comm::MpiEnvironment environment(std::chrono::minutes(5), device_of(options.backend));
  if (environment.world().size() > 1)
    throw UsageError(fmt::format("bench memory: found {} ranks, expected one", environment.world().size()));
  use_cores(environment, options.threads);
  const Network network = make_network({options.model, options.batch, 0, options.size, options.classes});
  options.size = network.shape(network.input())[2];
  MemoryBench(options, network, network.shape(network.outputs()[0])[1]).run();
}

}  // namespace

void add_bench_memory(CLI::App& bench) {
  auto options = std::make_shared<BenchMemoryOptions>();
  CLI::App* verb =
      bench.add_subcommand("memory", "Training steps within less memory: planned, and as others recompute");
  const auto add = [verb](const char* flag, auto& value, const char* what, const CLI::Validator& check) {
    return verb->add_option(flag, value, what)->capture_default_str()->check(check);
  };
  add_model_flags(*verb, *options, "images of a step");
  verb->option_defaults()->group("Length");
  add("--steps", options->steps, "timed steps of each row", whole_number(1, 1 << 20));
  add("--warmup", options->warmup, "steps before the timed ones", whole_number(1, 1 << 20));
  verb->option_defaults()->group("Execution");
  add_choice(*verb, "--backend", options->backend, "what runs the kernels");
  add_choice(*verb, "--precision", options->precision, "of products");
  add("--threads", options->threads, "0: the host's cores", whole_number(0, 4096))->type_name("T");
  add("--lanes", options->lanes, "CUDA: operations that may run side by side", whole_number(1, 8));
  verb->add_option("--tuning-file", options->tuning_file,
                   "CUDA: measured choices of kernels; what is missing is added")
      ->type_name("FILE");
  verb->add_option("--host-memory", options->host_memory, "for activations that wait there; 0: none")
      ->transform(size_or_zero())
      ->type_name("SIZE");
  verb->option_defaults()->group("Output");
  verb->add_flag("--json", options->json, "one JSON object a row");
  verb->callback([options] { bench_memory(*options); });
}

}  // namespace convoy::app
