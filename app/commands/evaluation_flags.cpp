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

CLI::Option* add_model_flags(CLI::App& verb, EvaluationOptions& options) {
  TrainOptions& run = options.run;
  CLI::Option* model = verb.add_option("--model", run.model, "FILE.onnx, with the weights that it holds")
                           ->check(not_empty())
                           ->excludes("--checkpoint")
                           ->type_name("FILE");
  const auto add = [&verb, model](const char* flag, auto& value, const char* what) {
    verb.add_option(flag, value, what)->capture_default_str()->check(whole_number(0, 1 << 14))->needs(model);
  };
  add("--size", run.size, "pixels a side that the network sees; 0: as the data, or as the file's");
  add("--test-resize", run.test_resize, "short side before the centre is cut out; 0: as stored");
  return model;
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

void add_evaluate_flags(CLI::App& verb, EvaluateOptions& options) {
  TrainOptions& run = options.evaluation.run;
  run.global_batch = 256;
  const auto add = [&verb](const char* flag, auto& value, const char* what, const CLI::Validator& check) {
    return verb.add_option(flag, value, what)->capture_default_str()->check(check);
  };
  verb.option_defaults()->group("Model and data");
  add_checkpoint_flags(verb, options.evaluation);
  CLI::Option* model = add_model_flags(verb, options.evaluation);
  model->description("FILE.onnx, with the weights that it holds, or a network of the zoo with --init");
  add("--init", run.init, "the network's weights: .safetensors, .onnx or a checkpoint", not_empty())
      ->needs(model)
      ->type_name("FILE");
  add("--data", run.data, "HDF5 file, or 'synthetic'", not_empty())->required()->type_name("FILE");
  add("--limit-test", run.limit_test, "test on N images, as many of every class; 0: all", whole_number(0));
  add_choice(verb, "--feed", run.feed, "every rank reads its slice, or rank 0 reads and scatters");
  verb.option_defaults()->group("Execution");
  add("--global-batch", run.global_batch, "images of all ranks together", whole_number(1, 1 << 30))
      ->type_name("B");
  add_execution_flags(verb, options.evaluation);
  verb.option_defaults()->group("Output");
  add("--report", options.report,
      "write the confusion matrix and the accuracy of every class to this folder; jobs/report draws them",
      not_empty())
      ->type_name("DIR");
}

}  // namespace convoy::app
