#include "app/training/evaluation.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <stdexcept>
#include <utility>

#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/model/weights/metadata.h"
#include "app/model/zoo/zoo.h"
#include "app/training/checkpoint/session_state.h"
#include "app/training/initial_weights.h"
#include "app/training/rank_setup.h"
#include "app/training/run_network.h"
#include "app/training/trained_network.h"
#include "comm/make_collectives.h"

namespace convoy::app {
namespace {

// Gives the network the weights of a file. Returns what has become of its last layer, or "" if it
// was taken as it is. Throws std::runtime_error if the file lacks any of the weights.
std::string set_all_weights(Network& network, const std::string& file,
                            const std::vector<std::string>& classes) {
  network.reinitialise();
  const FitRows rows = set_initial_weights(network, file, classes);
  const auto head = std::ranges::find(rows, "head", &FitRows::value_type::first);
  for (const Layer& layer : network.layers())
    for (const auto* specs : {&layer.parameters, &layer.states})
      for (const ParameterSpec& spec : *specs)
        if (!spec.values)
          throw std::runtime_error(fmt::format(
              "{}: gives no values for {} of {}, which has the shape {} for the data's {} classes{}", file,
              spec.name, network.name(), spec.shape_in_files().to_string(), classes.size(),
              head == rows.end() ? "" : "; " + head->second));
  return head == rows.end() ? "" : head->second;
}

}  // namespace

Evaluation::Evaluation(EvaluationOptions options, const comm::MpiEnvironment& environment, const Facts& flags)
    : options_(std::move(options)), ranks_(environment.world()) {
  Facts facts = facts_of(options_.run);
  facts.emplace_back("--ema", options_.ema ? "true" : "false");
  facts.insert(facts.end(), flags.begin(), flags.end());
  require_same_flags(ranks_, facts);
  run_on_all_ranks(ranks_, [&] { load(); });
  if (has_checkpoint())
    require_same_data(ranks_, options_.checkpoint,
                      {{"SHA-256 of the parameters", parameters_sha256(state_.parameters)}});
  threads_ = options_.gate != nullptr ? static_cast<int>(options_.run.threads)
                                      : use_cores(environment, options_.run.threads);
  run_on_all_ranks(ranks_, [&] {
    check_precision(options_.run.backend, options_.run.precision);
    collectives_ = comm::make_collectives(options_.run.backend, ranks_);
    if (has_checkpoint()) take_over_options(state_, options_.checkpoint, options_.run);
  });
}

void Evaluation::load() {
  if (options_.run.global_batch < ranks_.size())
    throw UsageError(fmt::format("--global-batch: found {}, expected at least the number of ranks, {}",
                                 options_.run.global_batch, ranks_.size()));
  if (has_checkpoint()) {
    state_ = load_trained(options_.checkpoint, options_.ema);
  } else if (is_model_file(options_.run.model)) {
    file_.emplace(options_.run.model);
    describe_file();
  }
}

// Reads which classes the model file knows and how its images were normalised. Only files that
// `convoy export` wrote contain this.
void Evaluation::describe_file() {
  const std::string& path = options_.run.model;
  state_.model = path;
  state_.classes = file_->classes();
  state_.input_shape = file_->image();
  const auto take = [&](const char* key, auto& values, std::int64_t count) {
    values = metadata_list<typename std::remove_reference_t<decltype(values)>::value_type>(file_->metadata(),
                                                                                           key, path);
    if (!values.empty() && std::ssize(values) != count)
      throw std::runtime_error(
          fmt::format("{}: its metadata '{}' have {} values, expected {}", path, key, values.size(), count));
  };
  take("classes", state_.class_names, state_.classes);
  take("mean", state_.mean, state_.input_shape[0]);
  take("std", state_.std, state_.input_shape[0]);
  if (state_.mean.empty() != state_.std.empty())
    throw std::runtime_error(fmt::format("{}: its metadata have one of mean and std, expected both", path));
}

Dataset& Evaluation::open(const std::function<OpenedData(const TrainOptions&)>& open) {
  OpenedData opened;
  run_on_all_ranks(ranks_, [&] {
    if (options_.run.feed == Feed::slice || ranks_.rank() == 0) opened = open(options_.run);
  });
  const std::int32_t encoded =
      ranks_.all_reduce(std::int32_t{opened.info.format == data::ImageFormat::encoded}, comm::ReduceOp::max,
                        "format of the data");
  if (encoded != 0 && (has_checkpoint() || file_)) take_over_size(state_, options_.run);
  dataset_.emplace(options_.run, ranks_, threads_, [&](const TrainOptions&) { return std::move(opened); });
  return *dataset_;
}

// Makes the network for this rank's part of a batch. A model file must have as many classes as the
// data, because a new last layer for another number of classes would not be trained.
Network Evaluation::make_evaluated_network(std::int64_t capacity) const {
  const data::ImageShape image = dataset_->input_shape();
  const Shape input{capacity, image.channels, image.height, image.width};
  const TrainOptions& run = options_.run;
  if (has_checkpoint())
    return make_trained_network(state_, options_.checkpoint, run, input, dataset_->classes());
  if (file_ && file_->classes() != dataset_->classes())
    throw std::runtime_error(fmt::format("{}: found {} classes, but {} is for {}", run.data,
                                         dataset_->classes(), run.model, file_->classes()));
  Network network =
      file_ ? file_->network(input, file_->classes()) : make_network(run.model, input, dataset_->classes());
  network = with_outputs(std::move(network), 0);
  if (!run.init.empty()) {
    const std::string head = set_all_weights(network, run.init, dataset_->info().classes);
    if (!head.empty() && ranks_.rank() == 0) spdlog::warn("{}: {}", run.init, head);
  }
  if (ranks_.rank() == 0)
    for (const std::string& note : network.notes()) spdlog::info("{}: {}", network.name(), note);
  return network;
}

void Evaluation::prepare() {
  const RankGroups groups{collectives_.get(), collectives_.get(), nullptr};
  const std::int64_t capacity = (options_.run.global_batch + ranks_.size() - 1) / ranks_.size();
  std::optional<Network> network;
  std::optional<CompiledSteps> steps;
  Facts facts;
  run_on_all_ranks(ranks_, [&] {
    if (dataset_->test_size() == 0)
      throw std::runtime_error(fmt::format("{}: no test images", options_.run.data));
    // Ignore the file's mean and deviation if they are for another number of channels than the
    // images have.
    if (file_ && std::ssize(state_.mean) != dataset_->input_shape().channels) state_.mean = state_.std = {};
    if (has_normalisation()) dataset_->set_normalisation(state_.mean, state_.std);
    network = make_evaluated_network(capacity);
    facts = facts_of(*network);
  });
  require_same_data(ranks_, options_.run.model, facts);
  run_on_all_ranks(ranks_, [&] {
    step_.backend = options_.run.backend;
    step_.precision = options_.run.precision;
    step_.input = input_of(options_.run.backend, *dataset_, capacity, false);
    step_.training = false;
    step_.keep_probabilities = options_.keep_probabilities;
    step_.gate = options_.gate;
    const Admission admitted(step_.gate, DeviceGate::Use::alone);
    steps = compile_steps(*network, step_, groups);
  });
  run_on_all_ranks(ranks_, [&] {
    session_.emplace(std::move(*steps), step_, groups);
    if (!has_checkpoint()) return;
    const data::ImageShape image = dataset_->input_shape();
    SessionState(*session_).restore(state_, options_.checkpoint, state_.model, dataset_->classes(),
                                    {image.channels, image.height, image.width});
  });
}

StepMetrics Evaluation::run(const VisitBatch& visit, std::function<void(const std::string&)> skip) {
  const auto source = dataset_->test(delivery_for(step_.input, session_->memory()), std::move(skip));
  return evaluate_batches(*session_, *source, 0, visit);
}

std::string Evaluation::describe() const {
  if (has_checkpoint()) return describe_trained(state_, options_.ema);
  const TrainOptions& run = options_.run;
  return run.init.empty() ? run.model : fmt::format("{} with the weights of {}", run.model, run.init);
}

}  // namespace convoy::app
