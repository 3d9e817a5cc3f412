#include "app/training/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <type_traits>

namespace convoy::app {
namespace {

using O = TrainOptions;
using enum Agreement;

constexpr std::monostate kAny{};
constexpr OnlyWith kCuda{"backend", {"cuda"}}, kOneCycle{"schedule", {"one-cycle"}};

constexpr OptionRow kData[] = {
    {"model", &O::model, run, kAny, "NAME", "network; `convoy info` lists them; or FILE.onnx (required)"},
    {"reinitialise", &O::reinitialise, run, kAny, "", "draw new first values for the weights of FILE.onnx"},
    {"init", &O::init, file, kAny, "FILE",
     "start from its weights: .safetensors, .onnx, or a checkpoint (.h5)"},
    {"data", &O::data, rank, kAny, "FILE", "HDF5 file, or 'synthetic' (required)"},
    {"out", &O::out, rank, kAny, "DIR", "folder for results and checkpoints (required)"},
    {"classes", &O::classes, ranks, WholeNumbers{2, 1 << 24}, "N", "classes of synthetic data"},
    {"size", &O::size, run, WholeNumbers{0, 1 << 14}, "N",
     "pixels a side that the network sees; 0: as the data"},
    {"limit-train", &O::limit_train, run, WholeNumbers{}, "N",
     "train on N images, as many of every class; 0: all"},
    {"limit-test", &O::limit_test, ranks, WholeNumbers{}, "N",
     "test on N images, as many of every class; 0: all"},
    {"feed", &O::feed, ranks, kAny, "", "every rank reads its slice, or rank 0 reads and scatters"},
    {"crop-padding", &O::crop_padding, run, WholeNumbers{0, 1 << 12}, "N",
     "random crop after padding by N pixels; 0: off"},
    {"cutout", &O::cutout, run, WholeNumbers{0, 1 << 12}, "N",
     "blank a random square of N pixels a side; 0: off"},
    {"flip", &O::flip, run, kAny, "", "mirror every other image at random"},
    {"random-resized-crop", &O::random_resized_crop, run, kAny, "",
     "crop 8 to 100 % of the area, then resize"},
    {"color-jitter", &O::color_jitter, run, "[0, 10]", "B,C,S,H",
     "change brightness, contrast and saturation, and turn the hue"},
    {"auto-augment", &O::auto_augment, run, kAny, "NAME",
     "none, trivial, rand or rand:N:M: N operations, magnitude M of 30"},
    {"random-erasing", &O::random_erasing, run, "[0, 1]", "P", "share of images that lose a rectangle"},
    {"mixup", &O::mixup, run, "[0, 1000]", "A", "mix pairs of images, shares from Beta(A, A); 0: off"},
    {"cutmix", &O::cutmix, run, "[0, 1000]", "A", "paste rectangles of other images, Beta(A, A); 0: off"},
    {"test-resize", &O::test_resize, ranks, WholeNumbers{0, 1 << 14}, "N",
     "short side before a test cuts out its centre; 0: as stored"},
    {"data-on-device", &O::data_on_device, ranks, kAny, "",
     "keep all images in the GPU's memory and augment them there", kCuda}};

constexpr OptionRow kLength[] = {
    {"epochs", &O::epochs, ranks, WholeNumbers{1, 1 << 30}, "E", "length of the run (this or --steps)"},
    {"steps", &O::steps, ranks, WholeNumbers{1, std::int64_t{1} << 40}, "N",
     "length of the run (this or --epochs)"},
    {"global-batch", &O::global_batch, run, WholeNumbers{1, 1 << 30}, "B",
     "samples of a step over all ranks (required)"},
    {"accumulate", &O::accumulate, run, WholeNumbers{1, 1 << 20}, "N",
     "compute a step's batch in N parts, one after the other"}};

constexpr OptionRow kOptimizer[] = {
    {"optimizer", &O::optimizer, run, kAny, "", "update rule"},
    {"learning-rate", &O::learning_rate, run, "(0, inf)", "R", "peak learning rate"},
    {"momentum", &O::momentum, run, "[0, 1)", "M", "sgd, lars", {"optimizer", {"sgd", "lars"}}},
    {"nesterov", &O::nesterov, run, kAny, "", "Nesterov momentum (sgd)", {"optimizer", {"sgd"}}},
    {"weight-decay", &O::weight_decay, run, "[0, inf)", "W", "not applied to biases and norms"},
    {"beta1", &O::beta1, run, "[0, 1)", "B", "adamw", {"optimizer", {"adamw"}}},
    {"beta2", &O::beta2, run, "[0, 1)", "B", "adamw", {"optimizer", {"adamw"}}},
    {"epsilon", &O::epsilon, run, "(0, inf)", "E", "adamw, lars", {"optimizer", {"adamw", "lars"}}},
    {"trust-coefficient", &O::trust_coefficient, run, "(0, inf)", "C", "lars", {"optimizer", {"lars"}}},
    {"clip-gradient-norm", &O::clip_gradient_norm, run, "[0, inf)", "G",
     "largest norm of the whole gradient; 0: off"},
    {"label-smoothing", &O::label_smoothing, run, "[0, 1)", "S",
     "share of the target spread over all classes"},
    {"loss-weights", &O::loss_weights, run, "[0, 1e6]", "W,W,...",
     "of the losses of a network's outputs, the main one first (default: it alone)"},
    {"drop-path", &O::drop_path, run, "[-1, 1)", "P",
     "share of samples that skip the last residual branch, others less; -1: as the network has it"},
    {"parametrisation", &O::parametrisation, run, kAny, "",
     "of networks with a width: mup lets all widths learn best at the same learning rate"},
    {"base-width",
     &O::base_width,
     run,
     WholeNumbers{1, 1000},
     "N",
     "mup: width at which it equals the standard one",
     {"parametrisation", {"mup"}}},
    {"freeze", &O::freeze, run, kAny, "PATTERN",
     "train no parameter of such a name, as 'layer1.*'; may be repeated"},
    {"freeze-batch-norm", &O::freeze_batch_norm, run, kAny, "",
     "every batch norm keeps its parameters and running statistics and uses these"},
    {"rate", &O::rate, run, kAny, "PATTERN=FACTOR",
     "factor of the learning rate of parameters of such a name; the last that fits counts, and it overrides "
     "--freeze"},
    {"ema", &O::ema, run, "[0, 1)", "DECAY",
     "decay a step of a moving average of the weights, tested too; 0: off"},
    {"sync-batch-norm", &O::sync_batch_norm, run, kAny, "", "batch statistics over all ranks (default: on)"}};

constexpr OptionRow kSchedule[] = {
    {"schedule", &O::schedule, run, kAny, "", "of the learning rate"},
    {"scale-learning-rate", &O::scale_learning_rate, run, kAny, "", "with global batch / base batch"},
    {"base-batch",
     &O::base_batch,
     run,
     WholeNumbers{1},
     "B",
     "batch that --learning-rate was chosen for",
     {"scale-learning-rate", {"linear", "sqrt"}}},
    {"warmup-epochs", &O::warmup_epochs, run, "[0, 1e6]", "E", "linear warm-up"},
    {"warmup-steps", &O::warmup_steps, run, WholeNumbers{}, "N", "linear warm-up"},
    {"milestones",
     &O::milestones,
     run,
     "(0, 1e9]",
     "E,E,...",
     "step: where the rate falls, in epochs; in steps with --steps",
     {"schedule", {"step"}}},
    {"gamma", &O::gamma, run, "(0, 1]", "G", "step: factor at a milestone", {"schedule", {"step"}}},
    {"final-learning-rate",
     &O::final_learning_rate,
     run,
     "[0, inf)",
     "R",
     "cosine, polynomial",
     {"schedule", {"cosine", "polynomial"}}},
    {"power", &O::power, run, "(0, inf)", "P", "polynomial", {"schedule", {"polynomial"}}},
    {"one-cycle-rise", &O::one_cycle_rise, run, "(0, 1)", "S", "share of the steps that rise", kOneCycle},
    {"one-cycle-initial-division", &O::one_cycle_initial_division, run, "[1, inf)", "D", "peak / first rate",
     kOneCycle},
    {"one-cycle-final-division", &O::one_cycle_final_division, run, "[1, inf)", "D", "first rate / last rate",
     kOneCycle},
    {"one-cycle-anneal", &O::one_cycle_anneal, run, kAny, "", "shape of both ways", kOneCycle}};

constexpr OptionRow kExecution[] = {
    {"backend", &O::backend, ranks, kAny, "", "what runs the kernels"},
    {"precision", &O::precision, ranks, kAny, "", "of products; statistics and losses stay fp32"},
    {"partition", &O::partition, ranks, WholeNumbers{1, 1 << 16}, "P",
     "split each replica's step over P ranks; 1: every rank is a replica"},
    {"memory-limit", &O::memory_limit, rank, kAny, "SIZE", "of one device, such as 8GiB"},
    {"host-memory", &O::host_memory, rank, WholeNumbers{0, std::int64_t{1} << 60}, "SIZE",
     "of one rank, for activations that wait there under a limit; 0: none"},
    {"tuning-file", &O::tuning_file, file, kAny, "FILE",
     "CUDA: measured choices of kernels; a run of one rank adds what is missing", kCuda},
    {"lanes", &O::lanes, ranks, kAny, "N",
     "CUDA: operations that may run side by side, 1 to 8; auto: as measured before the first step", kCuda},
    {"threads", &O::threads, rank, WholeNumbers{0, 4096}, "T",
     "of one rank; 0: the host's cores / its ranks"},
    {"seed", &O::seed, run, WholeNumbers{}, "S", "of weights, order, augmentation and dropout"},
    {"timeout", &O::timeout, ranks, "[0.1, 1e6]", "S",
     "seconds that ranks wait for one that does not come, rank 0 while it writes a checkpoint too"}};

constexpr OptionRow kMembers[] = {
    {"members", &O::members, start, kAny, "SPEC",
     "train many at once, spread over the ranks, each as if alone on one rank: KEY=VALUE,VALUE,FIRST..LAST; "
     "several such lists, separated by spaces or ';', are multiplied; or FILE.toml with [[member]] rows. A "
     "key "
     "is a flag, or width"},
    {"halving", &O::halving, start, WholeNumbers{}, "E",
     "after every E epochs the worse half of the members stops, by test accuracy; 0: off"}};

constexpr OptionRow kOutput[] = {
    {"resume", &O::resume, start, kAny, "", "go on from the newest checkpoint in --out"},
    {"overwrite", &O::overwrite, start, kAny, "",
     "replace the run in --out: metrics, summary and checkpoints"},
    {"checkpoint-every-epochs", &O::checkpoint_every_epochs, ranks, WholeNumbers{}, "E",
     "0: at the end only"},
    {"checkpoint-every-steps", &O::checkpoint_every_steps, ranks, WholeNumbers{1}, "N", "instead of epochs"},
    {"keep-checkpoints", &O::keep_checkpoints, ranks, WholeNumbers{1, 1 << 20}, "N",
     "newest ones kept next to the best"},
    {"log-every", &O::log_every, ranks, WholeNumbers{1}, "N", "steps between lines of metrics.jsonl"},
    {"trace", &O::trace, file, kAny, "FILE.json",
     "Chrome trace of a few steps of all ranks, for ui.perfetto.dev"},
    {"eval-every", &O::eval_every, ranks, WholeNumbers{}, "E", "epochs between tests; 0: at the end only"},
    {"stop-on-divergence", &O::stop_on_divergence, ranks, kAny, "",
     "end the run at a NaN or infinite loss (default: on)"}};

constexpr OptionGroup kGroups[] = {
    {"Model and data", kData}, {"Length", kLength},   {"Optimizer", kOptimizer}, {"Schedule", kSchedule},
    {"Execution", kExecution}, {"Members", kMembers}, {"Output", kOutput}};

template <typename Value>
nlohmann::json json_of(const Value& value) {
  if constexpr (NamedChoice<Value>)
    return name_of(value);
  else if constexpr (std::is_same_v<Value, Lanes>)
    return value.count == kAutoLanes ? nlohmann::json(value.text()) : nlohmann::json(value.count);
  else if constexpr (HasText<Value>)
    return value.text();
  else
    return value;
}

template <typename Value>
void assign(Value& value, const nlohmann::json& json) {
  if constexpr (NamedChoice<Value>) {
    const auto found = find_choice<Value>(json.get<std::string>());
    if (!found)
      throw std::invalid_argument(
          fmt::format("found {}, expected one of {}", json.dump(), fmt::join(names_of<Value>(), ", ")));
    value = *found;
  } else if constexpr (HasText<Value>) {
    value = Value::parse(json.is_number_integer() ? json.dump() : json.get<std::string>());
  } else {
    value = json.get<Value>();
  }
}

}  // namespace

std::span<const OptionGroup> train_option_groups() { return kGroups; }

nlohmann::json value_of(const TrainOptions& options, const OptionRow& row) {
  return std::visit([&](auto field) { return json_of(options.*field); }, row.field);
}

nlohmann::json to_json(const TrainOptions& options) {
  nlohmann::json json;
  for_each_option([&](const OptionRow& row) {
    if (row.agreement != start) json[row.flag] = value_of(options, row);
  });
  return json;
}

TrainOptions options_from_json(const nlohmann::json& json, const std::string& file) {
  TrainOptions options;
  for_each_option([&](const OptionRow& row) {
    if (!json.contains(row.flag)) return;
    try {
      std::visit([&](auto field) { assign(options.*field, json.at(row.flag)); }, row.field);
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("{}: option '{}': {}", file, row.flag, error.what()));
    }
  });
  return options;
}

}  // namespace convoy::app
