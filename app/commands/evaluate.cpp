// `convoy evaluate`: the accuracy of a checkpoint on a data set's test images.
#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/json_text.h"
#include "app/model/import/model_file.h"
#include "app/model/zoo/zoo.h"
#include "app/training/checkpoint/folder.h"
#include "app/training/checkpoint/session_state.h"
#include "app/training/class_order.h"
#include "app/training/dataset.h"
#include "app/training/rank_facts.h"
#include "app/training/rank_setup.h"
#include "app/training/run_network.h"
#include "app/training/train_options.h"
#include "comm/make_collectives.h"
#include "comm/placement/environment.h"

namespace convoy::app {
namespace {

struct EvaluateOptions {
  std::string checkpoint;  // empty with --model
  TrainOptions run;        // only data, batch, backend, feeding and threads matter
  bool json = false, ema = false;
};

// Makes the network for this rank's share of a batch. A model file must be for the data set's
// classes: a new last layer would be of no use here.
Network make_evaluated_network(const EvaluateOptions& options, const Dataset& dataset,
                               std::int64_t capacity) {
  const data::ImageShape image = dataset.input_shape();
  const Shape input{capacity, image.channels, image.height, image.width};
  const std::string& model = options.run.model;
  if (!options.checkpoint.empty())
    return with_outputs(make_network(model, input, dataset.classes()), options.run.loss_weights.size());
  const ModelFile file(model);
  if (file.classes() != dataset.classes())
    throw std::runtime_error(fmt::format("{}: found {} classes, but {} is for {}", options.run.data,
                                         dataset.classes(), model, file.classes()));
  return with_outputs(file.network(input, file.classes()), 0);
}

StepOptions step_options_of(const EvaluateOptions& options, const Dataset& dataset, std::int64_t capacity) {
  if (dataset.test_size() == 0) throw std::runtime_error(fmt::format("{}: no test images", options.run.data));
  StepOptions step;
  step.backend = options.run.backend;
  step.precision = options.run.precision;
  step.input = input_of(options.run.backend, dataset, capacity, false);
  step.training = false;
  return step;
}

void print_result(const EvaluateOptions& options, const CheckpointState& state, const StepMetrics& sum) {
  const double top1 = sum.top1 / sum.samples, top5 = sum.top5 / sum.samples;
  const bool of_run = !options.checkpoint.empty();
  if (options.json) {
    nlohmann::json object{{"model", options.run.model},
                          {"images", std::llround(sum.samples)},
                          {"test_loss", sum.loss()},
                          {"test_accuracy", top1},
                          {"test_top5", top5}};
    if (of_run)
      object.update({{"checkpoint", options.checkpoint}, {"step", state.step}, {"ema", options.ema}});
    fmt::print("{}\n", json_text(object));
    return;
  }
  fmt::print("{}{}{}: {:.0f} test images, loss {:.4f}, top-1 {:.2f} %, top-5 {:.2f} %\n",
             options.ema ? "moving average of " : "", options.run.model,
             of_run ? fmt::format(" after step {}", state.step) : "", sum.samples, sum.loss(), 100 * top1,
             100 * top5);
}

// Takes from the run the options that decide which test images the network sees. Synthetic images
// follow from the seed.
void take_over(TrainOptions& run, const CheckpointState& state, const std::string& file) {
  const TrainOptions saved = options_from_json(nlohmann::json::parse(state.options_json), file);
  run.model = state.model;
  run.size = saved.size;
  run.loss_weights = saved.loss_weights;
  run.test_resize = saved.test_resize;
  run.classes = state.classes;
  run.seed = static_cast<std::int64_t>(state.seed);
}

void evaluate(EvaluateOptions& options) {
  comm::MpiEnvironment environment(timeout_of(options.run), device_of(options.run.backend));
  const comm::Communicator& ranks = environment.world();
  Facts flags = facts_of(options.run);
  flags.emplace_back("--ema of evaluate", options.ema ? "true" : "false");
  require_same_flags(ranks, flags);
  const bool of_run = !options.checkpoint.empty();
  CheckpointState state;
  run_on_all_ranks(ranks, [&] {
    if (options.run.global_batch < ranks.size())
      throw UsageError(fmt::format("--global-batch: found {}, expected at least the number of ranks, {}",
                                   options.run.global_batch, ranks.size()));
    if (!of_run) return;
    options.checkpoint = checkpoint_file(options.checkpoint);
    state = load_checkpoint(options.checkpoint);
    if (options.ema) use_averages(state, options.checkpoint);
  });
  require_same_data(ranks, of_run ? options.checkpoint : options.run.model,
                    {{"SHA-256 of the parameters", parameters_sha256(state.parameters)}});
  const int threads = use_cores(environment, options.run.threads);
  std::unique_ptr<comm::Collectives> collectives;
  run_on_all_ranks(ranks, [&] {
    check_precision(options.run.backend, options.run.precision);
    collectives = comm::make_collectives(options.run.backend, ranks);
  });
  if (of_run) take_over(options.run, state, options.checkpoint);
  Dataset dataset(options.run, ranks, threads);
  require_same_data(ranks, options.run.data, facts_of(dataset, options.run, ranks));
  const RankGroups groups{collectives.get(), collectives.get(), nullptr};
  const std::int64_t capacity = (options.run.global_batch + ranks.size() - 1) / ranks.size();
  StepOptions step;
  std::optional<Network> network;
  std::optional<CompiledSteps> steps;
  std::optional<Session> session;
  Facts of_network;
  run_on_all_ranks(ranks, [&] {
    if (of_run) {
      const std::string warning = match_classes(dataset, options.run.data, state, options.checkpoint);
      if (!warning.empty() && ranks.rank() == 0) spdlog::warn("{}", warning);
      dataset.set_normalisation(state.mean, state.std);
    }
    network = make_evaluated_network(options, dataset, capacity);
    if (of_run) check_structure(state, options.checkpoint, structure_sha256(*network));
    of_network = facts_of(*network);
  });
  require_same_data(ranks, options.run.model, of_network);
  run_on_all_ranks(ranks, [&] {
    step = step_options_of(options, dataset, capacity);
    steps = compile_steps(*network, step, groups);
  });
  run_on_all_ranks(ranks, [&] {
    session.emplace(std::move(*steps), step, groups);
    if (!of_run) return;
    const data::ImageShape image = dataset.input_shape();
    SessionState(*session).restore(state, options.checkpoint, state.model, dataset.classes(),
                                   {image.channels, image.height, image.width});
  });
  const std::unique_ptr<data::BatchSource> source = dataset.test(delivery_for(step.input, session->memory()));
  const StepMetrics sum = session->evaluate(*source);
  if (ranks.rank() == 0) print_result(options, state, sum);
}

}  // namespace

void add_evaluate_command(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  options->run.global_batch = 256;
  CLI::App* verb = app.add_subcommand("evaluate", "Test a checkpoint or a model file on a data set");
  TrainOptions& run = options->run;
  const auto add = [verb](const char* flag, auto& value, const char* what, const CLI::Validator& check) {
    return verb->add_option(flag, value, what)->capture_default_str()->check(check);
  };
  verb->option_defaults()->group("Model and data");
  CLI::Option* checkpoint = verb->add_option("--checkpoint", options->checkpoint,
                                             "checkpoint of `convoy train`, or a run's folder for its best")
                                ->check(not_empty())
                                ->type_name("FILE");
  CLI::Option* model =
      verb->add_option("--model", run.model, "FILE.onnx to test with the weights that it holds")
          ->check(not_empty())
          ->excludes(checkpoint)
          ->type_name("FILE");
  verb->add_flag("--ema", options->ema, "test the moving average of a run with --ema")->needs(checkpoint);
  add("--size", run.size, "pixels a side that the network sees; 0: as the data", whole_number(0, 1 << 14))
      ->needs(model);
  add("--test-resize", run.test_resize, "short side before the centre is cut out; 0: as stored",
      whole_number(0, 1 << 14))
      ->needs(model);
  add("--data", run.data, "HDF5 file, or 'synthetic'", not_empty())->required()->type_name("FILE");
  add("--limit-test", run.limit_test, "test on N images, as many of every class; 0: all", whole_number(0));
  add_choice(*verb, "--feed", run.feed, "every rank reads its slice, or rank 0 reads and scatters");
  verb->option_defaults()->group("Execution");
  add("--global-batch", run.global_batch, "images of all ranks together", whole_number(1, 1 << 30))
      ->type_name("B");
  add_choice(*verb, "--backend", run.backend, "what runs the kernels");
  add_choice(*verb, "--precision", run.precision, "of products");
  add("--threads", run.threads, "of one rank; 0: the host's cores / its ranks", whole_number(0, 4096))
      ->type_name("T");
  add("--timeout", run.timeout, "seconds that ranks wait for one that does not come", number_in("[0.1, 1e6]"))
      ->type_name("S");
  verb->option_defaults()->group("Output");
  verb->add_flag("--json", options->json, "one JSON object");
  verb->callback([options] {
    if (options->checkpoint.empty() == options->run.model.empty())
      throw UsageError("expected --checkpoint, or --model FILE.onnx");
    if (!options->run.model.empty() && !is_model_file(options->run.model))
      throw UsageError(fmt::format("--model: found '{}', expected FILE.onnx", options->run.model));
    evaluate(*options);
  });
}

}  // namespace convoy::app
