#include "app/training/evaluate.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/json_text.h"
#include "app/model/import/model_file.h"
#include "app/training/class_order.h"
#include "app/training/report/confusion.h"

namespace convoy::app {
namespace {

EvaluationResult result_of(const Evaluation& evaluation, const StepMetrics& sum) {
  const double top1 = sum.top1 / sum.samples, top5 = sum.top5 / sum.samples;
  const EvaluationOptions& options = evaluation.options();
  nlohmann::json object{{"model", options.run.model},
                        {"images", std::llround(sum.samples)},
                        {"test_loss", sum.loss()},
                        {"test_accuracy", top1},
                        {"test_top5", top5}};
  if (evaluation.has_checkpoint())
    object.update(
        {{"checkpoint", options.checkpoint}, {"step", evaluation.checkpoint().step}, {"ema", options.ema}});
  const std::string normalised =
      evaluation.has_normalisation() ? "" : fmt::format(", images normalised by {}", options.run.data);
  return {fmt::format("{}{}: {:.0f} test images, loss {:.4f}, top-1 {:.2f} %, top-5 {:.2f} %",
                      evaluation.describe(), normalised, sum.samples, sum.loss(), 100 * top1, 100 * top5),
          json_text(object)};
}

// Fails on all ranks if the loss is not finite. All ranks have the same sums.
void require_finite(const Evaluation& evaluation, const StepMetrics& sum) {
  run_on_all_ranks(evaluation.ranks(), [&] {
    if (!std::isfinite(sum.loss()))
      throw std::runtime_error(fmt::format("{}: the loss over {:.0f} test images is not finite",
                                           evaluation.source(), sum.samples));
  });
}

StepMetrics evaluate_with_report(Evaluation& evaluation, const std::vector<std::string>& classes,
                                 const std::string& folder) {
  ConfusionMatrix confusion(classes);
  const StepMetrics sum =
      evaluation.run([&](const EvaluatedBatch& batch) { confusion.add(batch.labels, batch.probabilities); });
  require_finite(evaluation, sum);
  confusion.sum(evaluation.ranks());
  run_on_all_ranks(evaluation.ranks(), [&] {
    if (evaluation.ranks().rank() == 0) confusion.write(folder);
  });
  return sum;
}

}  // namespace

void check_evaluated(const EvaluateOptions& options) {
  const std::string& model = options.evaluation.run.model;
  if (options.evaluation.checkpoint.empty() == model.empty())
    throw UsageError("expected --checkpoint, or --model FILE.onnx, or --model NAME with --init FILE");
  if (!model.empty() && !is_model_file(model) && options.evaluation.run.init.empty())
    throw UsageError(
        fmt::format("--model: found '{}', expected FILE.onnx, or --init FILE with its weights", model));
  if (options.evaluation.run.data.empty()) throw UsageError("--data is required");
}

EvaluationResult evaluate(EvaluateOptions options, const comm::MpiEnvironment& environment) {
  check_evaluated(options);
  options.evaluation.keep_probabilities = !options.report.empty();
  const comm::Communicator& ranks = environment.world();
  Evaluation evaluation(options.evaluation, environment,
                        {{"--report", options.report.empty() ? "none" : "a folder"}});
  Dataset& dataset = evaluation.open();
  const std::string& data = options.evaluation.run.data;
  require_same_data(ranks, data, facts_of(dataset, options.evaluation.run, ranks));
  run_on_all_ranks(ranks, [&] {
    if (!evaluation.has_checkpoint() && evaluation.checkpoint().class_names.empty()) return;
    const std::string warning = match_classes(dataset, data, evaluation.checkpoint(), evaluation.source());
    if (!warning.empty() && ranks.rank() == 0) spdlog::warn("{}", warning);
  });
  evaluation.prepare();
  const StepMetrics sum = options.report.empty()
                              ? evaluation.run()
                              : evaluate_with_report(evaluation, dataset.info().classes, options.report);
  require_finite(evaluation, sum);
  return ranks.rank() == 0 ? result_of(evaluation, sum) : EvaluationResult();
}

}  // namespace convoy::app
