// `convoy evaluate`: measures the accuracy of a checkpoint or a model file on the test images of a
// data set.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/evaluation_flags.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/json_text.h"
#include "app/model/import/model_file.h"
#include "app/training/class_order.h"
#include "app/training/evaluation.h"
#include "app/training/rank_setup.h"
#include "app/training/report/confusion.h"

namespace convoy::app {
namespace {

struct EvaluateFlags {
  EvaluationOptions options;
  std::string report;
  bool json = false;
};

void print_result(const Evaluation& evaluation, bool json, const StepMetrics& sum) {
  const double top1 = sum.top1 / sum.samples, top5 = sum.top5 / sum.samples;
  const EvaluationOptions& options = evaluation.options();
  if (json) {
    nlohmann::json object{{"model", options.run.model},
                          {"images", std::llround(sum.samples)},
                          {"test_loss", sum.loss()},
                          {"test_accuracy", top1},
                          {"test_top5", top5}};
    if (evaluation.has_checkpoint())
      object.update(
          {{"checkpoint", options.checkpoint}, {"step", evaluation.checkpoint().step}, {"ema", options.ema}});
    fmt::print("{}\n", json_text(object));
    return;
  }
  const std::string normalised =
      evaluation.has_checkpoint() ? "" : fmt::format(", images normalised by {}", options.run.data);
  fmt::print("{}{}: {:.0f} test images, loss {:.4f}, top-1 {:.2f} %, top-5 {:.2f} %\n", evaluation.describe(),
             normalised, sum.samples, sum.loss(), 100 * top1, 100 * top5);
}

StepMetrics evaluate_with_report(Evaluation& evaluation, const std::vector<std::string>& classes,
                                 const std::string& folder) {
  ConfusionMatrix confusion(classes);
  const StepMetrics sum =
      evaluation.run([&](const EvaluatedBatch& batch) { confusion.add(batch.labels, batch.probabilities); });
  confusion.sum(evaluation.ranks());
  run_on_all_ranks(evaluation.ranks(), [&] {
    if (evaluation.ranks().rank() == 0) confusion.write(folder);
  });
  return sum;
}

void evaluate(EvaluateFlags& flags) {
  flags.options.keep_probabilities = !flags.report.empty();
  const TrainOptions& run = flags.options.run;
  comm::MpiEnvironment environment(timeout_of(run), device_of(run.backend));
  const comm::Communicator& ranks = environment.world();
  Evaluation evaluation(flags.options, environment,
                        {{"--report", flags.report.empty() ? "none" : "a folder"}});
  Dataset& dataset = evaluation.open();
  require_same_data(ranks, run.data, facts_of(dataset, run, ranks));
  run_on_all_ranks(ranks, [&] {
    if (!evaluation.has_checkpoint()) return;
    const std::string warning =
        match_classes(dataset, run.data, evaluation.checkpoint(), evaluation.options().checkpoint);
    if (!warning.empty() && ranks.rank() == 0) spdlog::warn("{}", warning);
  });
  evaluation.prepare();
  const StepMetrics sum = flags.report.empty()
                              ? evaluation.run()
                              : evaluate_with_report(evaluation, dataset.info().classes, flags.report);
  if (ranks.rank() == 0) print_result(evaluation, flags.json, sum);
}

}  // namespace

void add_evaluate_command(CLI::App& app) {
  auto flags = std::make_shared<EvaluateFlags>();
  TrainOptions& run = flags->options.run;
  run.global_batch = 256;
  CLI::App* verb = app.add_subcommand("evaluate", "Test a checkpoint or a model file on a data set");
  const auto add = [verb](const char* flag, auto& value, const char* what, const CLI::Validator& check) {
    return verb->add_option(flag, value, what)->capture_default_str()->check(check);
  };
  verb->option_defaults()->group("Model and data");
  CLI::Option* checkpoint = add_checkpoint_flags(*verb, flags->options);
  CLI::Option* model =
      verb->add_option("--model", run.model, "FILE.onnx to test with the weights that it holds")
          ->check(not_empty())
          ->excludes(checkpoint)
          ->type_name("FILE");
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
  add_execution_flags(*verb, flags->options);
  verb->option_defaults()->group("Output");
  add("--report", flags->report,
      "write the confusion matrix and the accuracy of every class to this folder; jobs/report draws them",
      not_empty())
      ->type_name("DIR");
  verb->add_flag("--json", flags->json, "one JSON object");
  verb->callback([flags] {
    const std::string& model = flags->options.run.model;
    if (flags->options.checkpoint.empty() == model.empty())
      throw UsageError("expected --checkpoint, or --model FILE.onnx");
    if (!model.empty() && !is_model_file(model))
      throw UsageError(fmt::format("--model: found '{}', expected FILE.onnx", model));
    evaluate(*flags);
  });
}

}  // namespace convoy::app
