#include "app/commands/bench/concurrency.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "app/commands/bench/model_flags.h"
#include "app/commands/validators.h"
#include "app/compile/step_choices.h"
#include "app/concurrency/glp4nn.h"
#include "app/concurrency/lane_choice.h"
#include "app/concurrency/sample_streams.h"
#include "app/errors.h"
#include "app/execute/lane_plan.h"
#include "app/execute/session_tools.h"
#include "app/median.h"
#include "app/model/zoo/zoo.h"
#include "app/timing/limited_steps.h"
#include "app/timing/step_times.h"
#include "app/training/rank_setup.h"
#include "app/training/train_options.h"
#include "comm/placement/environment.h"
#include "comm/single_rank.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {
namespace {

struct BenchConcurrencyOptions {
  std::string model, tuning_file;
  Precision precision = Precision::bf16;
  std::int64_t batch = 0, size = 0, classes = 0, steps = 30, warmup = 5, rounds = 5, tries = 0,
               reuse_delay = kLongReuseDelay;
  bool json = false;
};

StepOptions step_options_of(const BenchConcurrencyOptions& options) {
  StepOptions step;
  step.backend = kernels::Backend::cuda;
  step.precision = options.precision;
  step.tuning_file = options.tuning_file;
  step.lanes = kAutoLanes;
  step.synchronised_batch_norm = false;
  step.members[0].hyperparameters.weight_decay = 5e-5f;
  return step;
}

CompiledSteps with_delay(const CompiledSteps& steps, const StepOptions& options, int delay) {
  const auto assigned = [&](const CompiledGraph& of) {
    return assign_buffers(of.graph, of.descs, of.kernels, delay);
  };
  return {assigned(*steps.train), assigned(steps.evaluate), options};
}

// A row of the table: one way of running the step, with its milliseconds per step in each round.
struct Row {
  std::string name;
  std::string note;
  std::optional<Program> program;  // nothing: the host launches every kernel
  std::vector<double> ms = {};
};

class ConcurrencyBench {
 public:
  ConcurrencyBench(const BenchConcurrencyOptions& options, const Network& network,
                   const comm::Communicator& ranks)
      : options_(options),
        step_(step_options_of(options)),
        steps_(
            with_delay(compile_steps(network, step_, groups_), step_, static_cast<int>(options.reuse_delay))),
        session_(steps_, step_, groups_),
        classes_(network.shape(network.outputs()[0])[1]),
        resources_(track_resources(programs_.train)) {
    const Program plain = programs_.train;
    const LaneChoice measured = *choose_lanes(session_, step_, ranks);
    const LaneChoice model = choose_by_model(plain, resources_, device_throughput(step_), programs_.lanes);
    SessionTools(session_).prepare_timing();
    timer_ = make_step_timer(session_, programs_.train);
    load_ = make_step_load(plain, timer_->op_ms(), resources_, device_throughput(step_));
    rows_.push_back({"one by one", "every kernel launched by the host", std::nullopt});
    add("one lane", "a graph without forks", plain, one_lane(load_));
    add("GLP4NN's model", "streams for each layer", plain,
        glp4nn_lanes(plain, load_, resources_, kLaunchMs, programs_.lanes));
    const auto dependences = dependences_of(plain);
    for (int lanes = 2; lanes <= kMostLanes; ++lanes)
      add(fmt::format("fixed, {} lanes", lanes), "", plain, fixed_lanes(plain, dependences, lanes));
    add("auto, model alone", model.text(), plain, model.lanes);
    add("auto", measured.text(), plain, measured.lanes);
    analysis_ms_ = measured.analysis_ms;
    if (options.tries > 0) add_best_of_tries(plain);
    session_.tensors().reset();
  }

  void run() {
    fill_batch(session_, classes_, 1);
    SessionTools(session_)
        .prepare_timing();  // sets the control values that kernels read; no step has set them
    for (std::int64_t round = 0; round < options_.rounds; ++round)
      for (Row& row : rows_) row.ms.push_back(time(row, round == 0 ? options_.warmup : 1));
    run_sample_streams();
    print();
  }

 private:
  static constexpr double kLaunchMs = 3e-3;  // the time that the host takes to launch a kernel

  void add(std::string name, std::string note, const Program& plain, LaneOrder lanes) {
    Program program = plain;
    program.arrange(std::move(lanes));
    rows_.push_back({std::move(name), std::move(note), std::move(program)});
  }

  // Times many random list schedules (concurrency/schedule.h) and adds a row for the fastest one.
  // The schedules differ in their ListOptions: the seed, the number of lanes, and the caution. The
  // caution is a factor on the predicted slowdown of operations that run at the same time.
  void add_best_of_tries(const Program& plain) {
    using Clock = std::chrono::steady_clock;
    const InterferenceModel interference(load_.ops);
    LaneOrder best;
    double best_ms = std::numeric_limits<double>::infinity();
    constexpr std::int64_t kAtOnce = 20;
    for (std::int64_t first = 0; first < options_.tries; first += kAtOnce) {
      std::vector<LaneOrder> tries;
      for (std::int64_t i = first; i < std::min(first + kAtOnce, options_.tries); ++i) {
        const double caution[] = {0, 0.5, 1, 2};
        tries.push_back(list_schedule(load_, interference,
                                      {static_cast<int>(1 + i % programs_.lanes), 1e-3,
                                       caution[i / programs_.lanes % 4], static_cast<std::uint32_t>(1 + i)}));
      }
      const std::vector<double> ms = timer_->schedules(tries, Clock::now() + std::chrono::seconds(2));
      const auto least = std::ranges::min_element(ms);
      if (*least < best_ms) best_ms = *least, best = tries[static_cast<std::size_t>(least - ms.begin())];
    }
    add("best of tries", fmt::format("{} random schedules", options_.tries), plain, std::move(best));
  }

  double time(const Row& row, std::int64_t warmup) {
    if (row.program) {
      time_steps(session_, warmup, &*row.program);
      return time_steps(session_, options_.steps, &*row.program).mean();
    }
    using Clock = std::chrono::steady_clock;
    const auto run = [&](std::int64_t steps) {
      const auto start = Clock::now();
      for (std::int64_t step = 0; step < steps; ++step) programs_.train.run();
      kernels::synchronize(step_.backend);
      return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    };
    run(warmup);
    return run(options_.steps) / static_cast<double>(options_.steps);
  }

  // Times the step in the way of GLP4NN, which computes every convolution sample by sample on
  // several streams (concurrency/sample_streams.h), and adds a row for it. Call this after all
  // other rows are timed: once a dozen streams have run kernels, graphs that are captured later run
  // slower.
  void run_sample_streams() {
    const std::unique_ptr<SampleStreams> samples = make_sample_streams(session_, *steps_.train, load_);
    Row row{"GLP4NN's streams",
            fmt::format("{} convolutions by sample, on up to {} streams; only its time counts",
                        samples->convolutions(), samples->streams()),
            std::nullopt};
    samples->time(1);
    const std::int64_t steps = std::max<std::int64_t>(options_.steps / 10, 1);
    for (std::int64_t round = 0; round < options_.rounds; ++round) row.ms.push_back(samples->time(steps));
    rows_.insert(rows_.begin() + 1, std::move(row));
  }

  double ms_of(std::string_view name) const {
    const auto found = std::ranges::find(rows_, name, &Row::name);
    return median(found->ms);
  }

  void print() const {
    const double one = ms_of("one lane"), fixed = ms_of("fixed, 3 lanes");
    if (!options_.json)
      fmt::print(
          "{} {}x{} batch {} {}, {} instructions, analysis {:.2f} s\n{:<20} {:>9} {:>10} {:>8} {:>8} {:>8}\n",
          options_.model, options_.size, options_.size, options_.batch, name_of(options_.precision),
          load_.ops.size(), analysis_ms_ * 1e-3, "schedule", "ms", "images/s", "spread", "one lane",
          "3 lanes");
    for (const Row& row : rows_) {
      const double ms = median(row.ms);
      const auto [least, most] = std::ranges::minmax(row.ms);
      const double mean =
          std::accumulate(row.ms.begin(), row.ms.end(), 0.0) / static_cast<double>(row.ms.size());
      const double rate = static_cast<double>(options_.batch) / mean * 1e3;
      if (options_.json)
        fmt::print("{}\n", nlohmann::json({{"model", options_.model},
                                           {"batch", options_.batch},
                                           {"size", options_.size},
                                           {"precision", name_of(options_.precision)},
                                           {"schedule", row.name},
                                           {"note", row.note},
                                           {"ms", ms},
                                           {"ms_min", least},
                                           {"ms_max", most},
                                           {"images_per_second", rate},
                                           {"of_one_lane", one / ms},
                                           {"of_three_lanes", fixed / ms},
                                           {"analysis_ms", analysis_ms_}})
                               .dump());
      else
        fmt::print("{:<20} {:>9.4f} {:>10.0f} {:>6.1f} % {:>8.3f} {:>8.3f}  {}\n", row.name, ms, rate,
                   100 * (most - least) / ms, one / ms, fixed / ms, row.note);
    }
    std::fflush(stdout);
  }

  const BenchConcurrencyOptions& options_;
  const StepOptions step_;
  comm::SingleRank rank_;
  const RankGroups groups_{&rank_, &rank_, nullptr};
  const CompiledSteps steps_;
  Session session_;
  StepPrograms& programs_ = SessionTools(session_).programs();
  const std::int64_t classes_;
  const ResourceTable resources_;
  std::unique_ptr<StepTimer> timer_;
  StepLoad load_;
  std::deque<Row> rows_;
  double analysis_ms_ = 0;
};

void bench_concurrency(BenchConcurrencyOptions options) {
  const comm::MpiEnvironment environment(std::chrono::minutes(5), device_of(kernels::Backend::cuda));
  if (environment.world().size() > 1)
    throw UsageError(
        fmt::format("bench concurrency: found {} ranks, expected one", environment.world().size()));
  const Network network = make_network({options.model, options.batch, 0, options.size, options.classes});
  options.size = network.shape(network.input())[2];
  ConcurrencyBench(options, network, environment.world()).run();
}

}  // namespace

void add_bench_concurrency(CLI::App& bench) {
  auto options = std::make_shared<BenchConcurrencyOptions>();
  CLI::App* verb = bench.add_subcommand(
      "concurrency", "A GPU's training step with its operations one by one, in lanes, and as GLP4NN runs it");
  const auto add = [verb](const char* flag, auto& value, const char* what, const CLI::Validator& check) {
    return verb->add_option(flag, value, what)->capture_default_str()->check(check);
  };
  add_model_flags(*verb, *options, "images of a step");
  verb->option_defaults()->group("Length");
  add("--steps", options->steps, "timed steps of a row in each round", whole_number(1, 1 << 20));
  add("--warmup", options->warmup, "steps of a row before its first round", whole_number(1, 1 << 20));
  add("--rounds", options->rounds, "in which the rows take turns; medians count", whole_number(1, 1 << 10));
  add("--tries", options->tries, "random schedules of which the fastest is a row; 0: none",
      whole_number(0, 1 << 20));
  verb->option_defaults()->group("Execution");
  add("--reuse-delay", options->reuse_delay,
      "operations that pass before a freed buffer is used again, if that costs little memory",
      whole_number(0, 1 << 10));
  add_choice(*verb, "--precision", options->precision, "of products");
  verb->add_option("--tuning-file", options->tuning_file,
                   "measured choices of kernels and lanes; what is missing is added")
      ->type_name("FILE");
  verb->option_defaults()->group("Output");
  verb->add_flag("--json", options->json, "one JSON object a row");
  verb->callback([options] { bench_concurrency(*options); });
}

}  // namespace convoy::app
