// `convoy evaluate`: measures the accuracy of a checkpoint or a model file on the test images of a
// data set.
#include <fmt/format.h>

#include <memory>

#include "app/commands/commands.h"
#include "app/commands/evaluation_flags.h"
#include "app/training/rank_setup.h"

namespace convoy::app {

void add_evaluate_command(CLI::App& app) {
  struct Flags {
    EvaluateOptions options;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = app.add_subcommand("evaluate", "Test a checkpoint or a model file on a data set");
  add_evaluate_flags(*verb, flags->options);
  verb->add_flag("--json", flags->json, "one JSON object");
  verb->callback([flags] {
    check_evaluated(flags->options);
    const TrainOptions& run = flags->options.evaluation.run;
    comm::MpiEnvironment environment(timeout_of(run), device_of(run.backend));
    const EvaluationResult result = evaluate(flags->options, environment);
    if (!result.text.empty()) fmt::print("{}\n", flags->json ? result.json : result.text);
  });
}

}  // namespace convoy::app
