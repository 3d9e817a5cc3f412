#include "app/training/report/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/training/report/bottleneck.h"
#include "app/training/report/configuration_table.h"

namespace convoy::app {
namespace {

std::vector<std::string> own_command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::string augmentation_of(const TrainOptions& options) {
  std::string text;
  if (options.random_resized_crop) text += "random resized crop, ";
  if (options.crop_padding > 0) text += fmt::format("crop with padding {}, ", options.crop_padding);
  if (options.flip) text += "flip, ";
  if (!options.color_jitter.empty())
    text += fmt::format("colour jitter {}, ", fmt::join(options.color_jitter, " "));
  if (options.auto_augment.kind == data::AutoAugment::trivial) text += "TrivialAugment, ";
  if (options.auto_augment.kind == data::AutoAugment::rand)
    text += fmt::format("RandAugment of {} operations and magnitude {}, ",
                        options.auto_augment.rand().operations, options.auto_augment.rand().magnitude);
  if (options.cutout > 0) text += fmt::format("cutout {}, ", options.cutout);
  if (options.random_erasing > 0) text += fmt::format("random erasing {}, ", options.random_erasing);
  if (options.drop_path > 0) text += fmt::format("drop path {}, ", options.drop_path);
  if (options.mixup > 0) text += fmt::format("mixup {}, ", options.mixup);
  if (options.cutmix > 0) text += fmt::format("cutmix {}, ", options.cutmix);
  return text.empty() ? "none" : text.substr(0, text.size() - 2);
}

// Returns a text that says which work on images the host's threads do and which the device does.
std::string loading_of(const TrainOptions& options, data::ImageFormat format, int threads) {
  const std::string workers = fmt::format("{} thread{} a rank", threads, threads == 1 ? "" : "s");
  if (options.backend != kernels::Backend::cuda) return workers + " read, decode, augment and normalise";
  if (options.data_on_device) return "the device holds all images, augments and normalises";
  return fmt::format("{} read{} and cut; the device resizes, augments and normalises", workers,
                     format == data::ImageFormat::encoded ? ", decode" : "");
}

}  // namespace

RunReport::RunReport(const TrainOptions& options, const RunPlan& plan, const Dataset& dataset,
                     const Session& session, Output output)
    : options_(options),
      plan_(plan),
      writes_(output != Output::none),
      prints_(output == Output::all),
      progress_(prints_ ? plan.output : nullptr, {prints_ ? terminal_of(*plan.output) : Terminal{},
                                                  options.log_every, plan.total_steps, plan.steps_per_epoch}),
      times_(plan.total_steps),
      train_loss_(std::numeric_limits<double>::quiet_NaN()),
      test_accuracy_(std::numeric_limits<double>::quiet_NaN()) {
  if (!writes_) return;
  const std::filesystem::path out(options.out);
  write_manifest(out / "manifest.json",
                 {own_command_line(), plan.ranks, std::chrono::system_clock::now(), plan.resumed_step},
                 to_json(options));
  // This run has steps left to do, so a summary that is already in the folder is out of date.
  if (!nothing_to_do()) std::filesystem::remove(out / "summary.json");
  metrics_ = std::make_unique<MetricsWriter>(out / "metrics.jsonl", plan.resumed_step);
  if (prints_) print_configuration(dataset, session);
}

std::int64_t RunReport::parameter_count(const Session& session) const {
  std::int64_t parameters = 0;
  if (plan_.partition)
    for (const StageSummary& part : plan_.partition->stages) parameters += part.parameters;
  else
    for (const GraphParameter& parameter : session.steps().main().graph.parameters)
      parameters += parameter.spec.parameter_count();
  return parameters;
}

// Adds a row for each stage of a partitioned step and a row with the predicted time of a step.
void RunReport::describe_partition(ConfigurationTable& table) const {
  if (!plan_.partition) return;
  const PartitionPlan& plan = *plan_.partition;
  table.section("Partition");
  table.row("replicas", fmt::format("{} of {} ranks", std::ssize(plan_.ranks) / std::ssize(plan.stages),
                                    plan.stages.size()));
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const StageSummary& stage = plan.stages[i];
    table.row(fmt::format("stage {}", i),
              stage.operations == 0
                  ? std::string("nothing: fewer stages are faster")
                  : fmt::format("{} operations, {} parameters, {}, busy {:.2f} ms: {}", stage.operations,
                                with_thousands(stage.parameters),
                                format_bytes(static_cast<std::uint64_t>(stage.arena_bytes)), stage.busy_ms,
                                stage.layers.empty() ? "backward only" : stage.layers));
  }
  table.row("transfers", fmt::format("{} a step, {}", plan.transfers,
                                     format_bytes(static_cast<std::uint64_t>(plan.cut_bytes))));
  table.row("links", fmt::format("{:.0f} us and {:.1f} GB/s at worst", plan.link_latency_ms * 1e3,
                                 plan.link_bytes_per_ms * 1e-6));
  table.row("predicted",
            fmt::format("{:.2f} ms a step; one rank would need {:.2f} ms and {}", plan.predicted_step_ms,
                        plan.one_rank_ms, format_bytes(static_cast<std::uint64_t>(plan.one_rank_bytes))));
  table.row("planned in", fmt::format("{:.2f} s", plan.seconds));
}

void RunReport::print_configuration(const Dataset& dataset, const Session& session) const {
  ConfigurationTable table;
  table.section("Model");
  table.row("network", options_.model);
  const std::int64_t parameters = parameter_count(session);
  table.row("parameters", with_thousands(parameters) +
                              (plan_.frozen_parameters > 0
                                   ? fmt::format(", {} of them trained",
                                                 with_thousands(parameters - plan_.frozen_parameters))
                                   : ""));
  table.row("input", dataset.input_shape().to_string() + fmt::format(", {} classes", dataset.classes()));
  table.row("backend",
            fmt::format("{}, {}, {} thread{} a rank", name_of(options_.backend), name_of(options_.precision),
                        plan_.threads, plan_.threads == 1 ? "" : "s"));
  if (options_.backend == kernels::Backend::cuda)
    table.row("lanes", plan_.lanes.empty() ? options_.lanes.text() : plan_.lanes);
  if (!plan_.initial_weights.empty()) table.section("Initial weights");
  for (const auto& [what, names] : plan_.initial_weights) table.row(what, names);
  table.section("Ranks");
  table.ranks(plan_.ranks);
  table.section("Data");
  table.row("source", fmt::format("{}, {}", options_.data, name_of(options_.feed)));
  table.row("images", fmt::format("{} training, {} test", with_thousands(dataset.train_size()),
                                  with_thousands(dataset.test_size())));
  table.row("augmentation", augmentation_of(options_));
  table.row("loading", loading_of(options_, dataset.info().format, plan_.threads));
  table.section("Training");
  if (!plan_.members.empty()) table.row("members", plan_.members);
  table.row("length", fmt::format("{} steps, {} an epoch", with_thousands(plan_.total_steps),
                                  with_thousands(plan_.steps_per_epoch)));
  const auto replicas = static_cast<int>(std::ssize(plan_.ranks)) / options_.partition;
  table.row("global batch",
            fmt::format("{}{}, at most {} a {}", options_.global_batch,
                        options_.accumulate > 1 ? fmt::format(" in {} parts", options_.accumulate) : "",
                        options_.images_of_replica(replicas), options_.partition > 1 ? "replica" : "rank"));
  for (const auto& [name, value] : training_rows(options_, plan_.steps_per_epoch)) table.row(name, value);
  table.row("batch norm", options_.sync_batch_norm ? "synchronised" : "of each rank's own batch");
  table.row("seed", fmt::format("{}", options_.seed));
  if (plan_.resumed_step) table.row("resumed", fmt::format("after step {}", *plan_.resumed_step));
  describe_partition(table);
  table.section(plan_.partition ? "Memory of rank 0" : "Memory of one rank");
  std::int64_t all = 0;
  for (const MemoryUse& use : plan_.memory) {
    table.row(use.purpose, format_bytes(static_cast<std::uint64_t>(use.bytes)));
    all += use.bytes;
  }
  table.row("all", format_bytes(static_cast<std::uint64_t>(all)) +
                       (options_.memory_limit > 0
                            ? fmt::format(" of at most {}", format_bytes(options_.memory_limit))
                            : ""));
  for (const auto& [name, value] : memory_rows(session.steps().fit)) table.row(name, value);
  *plan_.output << table.render() << std::flush;
}

void RunReport::step(const StepRecord& record) {
  times_.add(record.timing);
  train_loss_ = record.metrics.loss();
  if (!writes_) return;
  const double rate = recent_rate_.add(record.timing);
  progress_.step({record.step, train_loss_, record.learning_rate, rate});
  if (record.step % options_.log_every != 0 && record.step != plan_.total_steps) return;
  StepMetricsLine line;
  line.loss = train_loss_;
  line.learning_rate = record.learning_rate;
  line.images_per_second = rate;
  line.step_ms = record.timing.step_ms;
  line.data_wait_ms = record.timing.data_wait_ms;
  line.exposed_comm_ms = record.timing.exposed_comm_ms;
  line.top1 = record.metrics.top1 / record.metrics.samples;
  line.top5 = record.metrics.top5 / record.metrics.samples;
  metrics_->write(record.step, static_cast<double>(record.step) / static_cast<double>(plan_.steps_per_epoch),
                  line);
  recent_rate_.restart();
}

void RunReport::evaluation(std::int64_t step, const StepMetrics& test,
                           const std::optional<StepMetrics>& average) {
  const auto line_of = [](const StepMetrics& sum) {
    return TestMetricsLine{sum.loss(), sum.top1 / sum.samples, sum.top5 / sum.samples};
  };
  const TestMetricsLine line = line_of(test);
  const auto of_average = average ? std::optional(line_of(*average)) : std::nullopt;
  test_accuracy_ = line.top1;
  if (of_average) ema_test_accuracy_ = of_average->top1;
  if (!writes_) return;
  const double epoch = static_cast<double>(step) / static_cast<double>(plan_.steps_per_epoch);
  metrics_->write(step, epoch, std::nullopt, line, of_average);
  const auto text = [](const TestMetricsLine& of) {
    return fmt::format("loss {:.4f}, top-1 {:.2f} %, top-5 {:.2f} %", of.loss, 100 * of.top1, 100 * of.top5);
  };
  progress_.message(fmt::format("test after epoch {:.4g}: {}{}", epoch, text(line),
                                of_average ? "; moving average: " + text(*of_average) : ""));
}

bool RunReport::nothing_to_do() const { return plan_.resumed_step == plan_.total_steps; }

bool RunReport::has_summary() const {
  return std::filesystem::exists(std::filesystem::path(options_.out) / "summary.json");
}

void RunReport::message(const std::string& line) { progress_.message(line); }

RankTimes RunReport::rank_times() const {
  const double step = times_.mean_step_ms(), comm = times_.mean_exposed_comm_ms(),
               data = times_.mean_data_wait_ms();
  return {step, std::max(step - comm - data, 0.0), comm, data};
}

void RunReport::finish(std::int64_t steps, const std::string& parameters_sha256,
                       const std::vector<RankTimes>& ranks, const PeakMemory& peak) {
  if (!writes_) return;
  progress_.finish();
  Summary summary;
  summary.model = options_.model;
  summary.backend = name_of(options_.backend);
  summary.precision = name_of(options_.precision);
  summary.ranks = static_cast<int>(plan_.ranks.size());
  for (const RankPlace& place : plan_.ranks) summary.devices.push_back(place.device);
  summary.global_batch = options_.global_batch;
  summary.epochs = steps / plan_.steps_per_epoch;
  summary.steps = steps;
  summary.images_per_second = times_.images_per_second();
  summary.step_ms_median = times_.median_ms();
  summary.step_ms_p95 = times_.p95_ms();
  summary.train_loss = train_loss_;
  summary.test_accuracy = test_accuracy_;
  summary.ema_test_accuracy = ema_test_accuracy_;
  summary.exposed_comm_ms = times_.mean_exposed_comm_ms();
  summary.data_wait_ms = times_.mean_data_wait_ms();
  summary.peak_device_bytes = peak.device_bytes;
  summary.peak_host_bytes = peak.host_bytes;
  summary.memory_bytes = plan_.memory;
  if (plan_.partition) summary.predicted_step_ms = plan_.partition->predicted_step_ms;
  const Bottleneck bottleneck = find_bottleneck(ranks);
  summary.limited_by = bottleneck.limit;
  summary.slowest_rank = bottleneck.slowest_rank;
  summary.rank_times = ranks;
  summary.parameters_sha256 = parameters_sha256;
  write_summary(std::filesystem::path(options_.out) / "summary.json", summary);
  if (!prints_) return;
  *plan_.output
      << fmt::format(
             "{} steps, {:.1f} images/s, {:.2f} ms a step ({:.2f} waiting for data, {:.2f} for other ranks), "
             "test accuracy {:.2f} %{}\n{}\nparameters_sha256 {}\n",
             steps, summary.images_per_second, summary.step_ms_median, summary.data_wait_ms,
             summary.exposed_comm_ms, 100 * test_accuracy_,
             ema_test_accuracy_ ? fmt::format(", of the moving average {:.2f} %", 100 * *ema_test_accuracy_)
                                : "",
             describe(bottleneck, plan_.ranks), parameters_sha256)
      << std::flush;
}

}  // namespace convoy::app
