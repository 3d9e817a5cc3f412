#include "app/commands/evaluation_flags.h"

#include "app/commands/validators.h"

namespace convoy::app {

CLI::Option* add_checkpoint_flags(CLI::App& verb, EvaluationOptions& options) {
  CLI::Option* checkpoint = verb.add_option("--checkpoint", options.checkpoint,
                                            "checkpoint of `convoy train`, or a run's folder for its best")
                                ->check(not_empty())
                                ->type_name("FILE");
  verb.add_flag("--ema", options.ema, "take the moving average of a run with --ema")->needs(checkpoint);
  return checkpoint;
}

void add_execution_flags(CLI::App& verb, EvaluationOptions& options) {
  TrainOptions& run = options.run;
  const auto add = [&verb](const char* flag, auto& value, const char* what, const CLI::Validator& check) {
    return verb.add_option(flag, value, what)->capture_default_str()->check(check);
  };
  add_choice(verb, "--backend", run.backend, "what runs the kernels");
  add_choice(verb, "--precision", run.precision, "of products");
  add("--threads", run.threads, "of one rank; 0: the host's cores / its ranks", whole_number(0, 4096))
      ->type_name("T");
  add("--timeout", run.timeout, "seconds that ranks wait for one that does not come", number_in("[0.1, 1e6]"))
      ->type_name("S");
}

}  // namespace convoy::app
