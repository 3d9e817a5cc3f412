#include "app/commands/train_flags.h"

#include "app/commands/config_file.h"
#include "app/commands/validators.h"

namespace convoy::app {
namespace {

template <typename Value>
CLI::Option* add(CLI::App& verb, const std::string& flag, Value& value, const std::string& description,
                 const CLI::Validator& validator, const std::string& type) {
  CLI::Option* option = verb.add_option(flag, value, description)->check(validator)->capture_default_str();
  return type.empty() ? option : option->type_name(type);  // empty: the names to choose from
}

void add_data(CLI::App& verb, TrainOptions& o) {
  add(verb, "--model", o.model, "network; `convoy info` lists them (required)", not_empty(), "NAME");
  add(verb, "--data", o.data, "HDF5 file, or 'synthetic' (required)", not_empty(), "FILE");
  add(verb, "--out", o.out, "folder for results and checkpoints (required)", not_empty(), "DIR");
  add(verb, "--classes", o.classes, "classes of synthetic data", whole_number(2, 1 << 24), "N");
  add(verb, "--size", o.size, "pixels a side that the network sees; 0: as the data", whole_number(0, 1 << 14),
      "N");
  add(verb, "--limit-train", o.limit_train, "train on N images, as many of every class; 0: all",
      whole_number(0), "N");
  add(verb, "--limit-test", o.limit_test, "test on N images, as many of every class; 0: all", whole_number(0),
      "N");
  add(verb, "--feed", o.feed, "every rank reads its slice, or rank 0 reads and scatters",
      one_of({"slice", "scatter"}), "");
  add(verb, "--crop-padding", o.crop_padding, "random crop after padding by N pixels; 0: off",
      whole_number(0, 1 << 12), "N");
  add(verb, "--cutout", o.cutout, "blank a random square of N pixels a side; 0: off",
      whole_number(0, 1 << 12), "N");
  verb.add_flag("--flip", o.flip, "mirror every other image at random");
  verb.add_flag("--random-resized-crop", o.random_resized_crop, "crop 8 to 100 % of the area, then resize");
  add(verb, "--color-jitter", o.color_jitter, "change brightness, contrast and saturation, and turn the hue",
      number_in("[0, 10]"), "B,C,S,H")
      ->delimiter(',');
  add(verb, "--auto-augment", o.auto_augment,
      "none, trivial, rand or rand:N:M: N operations, magnitude M of 30", not_empty(), "NAME");
  add(verb, "--random-erasing", o.random_erasing, "share of images that lose a rectangle",
      number_in("[0, 1]"), "P");
  add(verb, "--mixup", o.mixup, "mix pairs of images, shares from Beta(A, A); 0: off", number_in("[0, 1000]"),
      "A");
  add(verb, "--cutmix", o.cutmix, "paste rectangles of other images, Beta(A, A); 0: off",
      number_in("[0, 1000]"), "A");
  add(verb, "--test-resize", o.test_resize, "short side before a test cuts out its centre; 0: as stored",
      whole_number(0, 1 << 14), "N");
  verb.add_flag("--data-on-device", o.data_on_device,
                "keep all images in the GPU's memory and augment them there");
}

void add_length(CLI::App& verb, TrainOptions& o) {
  add(verb, "--epochs", o.epochs, "length of the run (this or --steps)", whole_number(1, 1 << 30), "E");
  add(verb, "--steps", o.steps, "length of the run (this or --epochs)",
      whole_number(1, std::int64_t{1} << 40), "N");
  add(verb, "--global-batch", o.global_batch, "samples of a step over all ranks (required)",
      whole_number(1, 1 << 30), "B");
  add(verb, "--accumulate", o.accumulate, "compute a step's batch in N parts, one after the other",
      whole_number(1, 1 << 20), "N");
}

void add_optimizer(CLI::App& verb, TrainOptions& o) {
  add(verb, "--optimizer", o.optimizer, "update rule", one_of({"sgd", "lars", "adamw"}), "");
  add(verb, "--learning-rate", o.learning_rate, "peak learning rate", number_in("(0, inf)"), "R");
  add(verb, "--momentum", o.momentum, "sgd, lars", number_in("[0, 1)"), "M");
  verb.add_flag("--nesterov", o.nesterov, "Nesterov momentum (sgd)");
  add(verb, "--weight-decay", o.weight_decay, "not applied to biases and norms", number_in("[0, inf)"), "W");
  add(verb, "--beta1", o.beta1, "adamw", number_in("[0, 1)"), "B");
  add(verb, "--beta2", o.beta2, "adamw", number_in("[0, 1)"), "B");
  add(verb, "--epsilon", o.epsilon, "adamw, lars", number_in("(0, inf)"), "E");
  add(verb, "--trust-coefficient", o.trust_coefficient, "lars", number_in("(0, inf)"), "C");
  add(verb, "--clip-gradient-norm", o.clip_gradient_norm, "largest norm of the whole gradient; 0: off",
      number_in("[0, inf)"), "G");
  add(verb, "--label-smoothing", o.label_smoothing, "share of the target spread over all classes",
      number_in("[0, 1)"), "S");
  add(verb, "--ema", o.ema, "decay a step of a moving average of the weights, tested too; 0: off",
      number_in("[0, 1)"), "DECAY");
  verb.add_flag("--sync-batch-norm,!--no-sync-batch-norm", o.sync_batch_norm,
                "batch statistics over all ranks (default: on)");
}

void add_schedule(CLI::App& verb, TrainOptions& o) {
  add(verb, "--schedule", o.schedule, "of the learning rate", one_of(schedule_names()), "");
  add(verb, "--scale-learning-rate", o.scale_learning_rate, "with global batch / base batch",
      one_of(rate_scaling_names()), "");
  add(verb, "--base-batch", o.base_batch, "batch that --learning-rate was chosen for", whole_number(1), "B");
  add(verb, "--warmup-epochs", o.warmup_epochs, "linear warm-up", number_in("[0, 1e6]"), "E");
  add(verb, "--warmup-steps", o.warmup_steps, "linear warm-up", whole_number(0), "N");
  add(verb, "--milestones", o.milestones, "step: where the rate falls, in epochs; in steps with --steps",
      number_in("(0, 1e9]"), "E,E,...")
      ->delimiter(',');
  add(verb, "--gamma", o.gamma, "step: factor at a milestone", number_in("(0, 1]"), "G");
  add(verb, "--final-learning-rate", o.final_learning_rate, "cosine, polynomial", number_in("[0, inf)"), "R");
  add(verb, "--power", o.power, "polynomial", number_in("(0, inf)"), "P");
  add(verb, "--one-cycle-rise", o.one_cycle_rise, "share of the steps that rise", number_in("(0, 1)"), "S");
  add(verb, "--one-cycle-initial-division", o.one_cycle_initial_division, "peak / first rate",
      number_in("[1, inf)"), "D");
  add(verb, "--one-cycle-final-division", o.one_cycle_final_division, "first rate / last rate",
      number_in("[1, inf)"), "D");
  add(verb, "--one-cycle-anneal", o.one_cycle_anneal, "shape of both ways", one_of({"cosine", "linear"}), "");
}

void add_execution(CLI::App& verb, TrainOptions& o) {
  add(verb, "--backend", o.backend, "what runs the kernels", one_of({"cpu", "cuda", "reference"}), "");
  add(verb, "--precision", o.precision, "of products; statistics and losses stay fp32",
      one_of({"fp32", "tf32", "bf16"}), "");
  add(verb, "--partition", o.partition, "split each replica's step over P ranks; 1: every rank is a replica",
      whole_number(1, 1 << 16), "P");
  verb.add_option("--memory-limit", o.memory_limit, "of one device, such as 8GiB")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
  add(verb, "--tuning-file", o.tuning_file,
      "CUDA: measured choices of kernels; a run of one rank adds what is missing", not_empty(), "FILE");
  add(verb, "--lanes", o.lanes, "CUDA: operations that may run side by side", whole_number(1, 8), "N");
  add(verb, "--threads", o.threads, "of one rank; 0: the host's cores / its ranks", whole_number(0, 4096),
      "T");
  add(verb, "--seed", o.seed, "of weights, order, augmentation and dropout", whole_number(0), "S");
  add(verb, "--timeout", o.timeout,
      "seconds that ranks wait for one that does not come, rank 0 while it writes a checkpoint too",
      number_in("[0.1, 1e6]"), "S");
}

void add_output(CLI::App& verb, TrainOptions& o) {
  verb.add_flag("--resume", o.resume, "go on from the newest checkpoint in --out");
  verb.add_flag("--overwrite", o.overwrite, "replace the run in --out: metrics, summary and checkpoints");
  add(verb, "--checkpoint-every-epochs", o.checkpoint_every_epochs, "0: at the end only", whole_number(0),
      "E");
  add(verb, "--checkpoint-every-steps", o.checkpoint_every_steps, "instead of epochs", whole_number(1), "N");
  add(verb, "--keep-checkpoints", o.keep_checkpoints, "newest ones kept beside the best",
      whole_number(1, 1 << 20), "N");
  add(verb, "--log-every", o.log_every, "steps between lines of metrics.jsonl", whole_number(1), "N");
  verb.add_option("--trace", o.trace, "Chrome trace of a few steps of all ranks, for ui.perfetto.dev")
      ->check(not_empty())
      ->type_name("FILE.json");
  add(verb, "--eval-every", o.eval_every, "epochs between tests; 0: at the end only", whole_number(0), "E");
  verb.add_flag("--stop-on-divergence,!--no-stop-on-divergence", o.stop_on_divergence,
                "end the run at a NaN or infinite loss (default: on)");
}

}  // namespace

void add_train_flags(CLI::App& verb, TrainOptions& options) {
  const std::pair<const char*, void (*)(CLI::App&, TrainOptions&)> groups[] = {
      {"Model and data", add_data}, {"Length", add_length},       {"Optimizer", add_optimizer},
      {"Schedule", add_schedule},   {"Execution", add_execution}, {"Output", add_output}};
  for (const auto& [name, add_group] : groups) {
    verb.option_defaults()->group(name);
    add_group(verb, options);
  }
  verb.option_defaults()->group("Options");
  add_config_option(verb, {{"epochs", "steps"},
                           {"warmup-epochs", "warmup-steps"},
                           {"checkpoint-every-epochs", "checkpoint-every-steps"}});
}

}  // namespace convoy::app
