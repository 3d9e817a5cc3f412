// The options of a training run: their values, checks that they fit each other, and the
// learning-rate schedule that follows from them.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/compile/lanes.h"
#include "app/compile/step_choices.h"
#include "app/compile/step_options.h"
#include "app/training/learning_rate_schedule.h"
#include "app/training/parametrisation.h"
#include "data/loader/image_op_settings.h"
#include "kernels/device/mix_parameters.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

// The ranks that read the stored images. With `slice` every rank reads its part of each batch; with
// `scatter` rank 0 reads all images and sends them to the others.
enum class Feed : std::uint8_t { slice, scatter };

template <>
inline constexpr auto kChoices<Feed> = std::to_array<Choice<Feed>>({{"slice", Feed::slice},
                                                                    {"scatter", Feed::scatter}});

template <>
inline constexpr auto kChoices<kernels::OptimizerKind> =
    std::to_array<Choice<kernels::OptimizerKind>>({{"sgd", kernels::OptimizerKind::sgd},
                                                   {"lars", kernels::OptimizerKind::lars},
                                                   {"adamw", kernels::OptimizerKind::adamw}});

template <>
inline constexpr auto kChoices<data::AutoAugment> =
    std::to_array<Choice<data::AutoAugment>>({{"none", data::AutoAugment::none},
                                              {"trivial", data::AutoAugment::trivial},
                                              {"rand", data::AutoAugment::rand}});

// RandAugment's number of operations, from 1 to kernels::kMostImageOps, and their magnitude, from 0
// to 30.
struct RandAugment {
  int operations = 2, magnitude = 9;
  bool operator==(const RandAugment&) const = default;
};

struct AutoAugmentPolicy {
  data::AutoAugment kind = data::AutoAugment::none;
  // The numbers N and M of "rand:N:M", or the default numbers of "rand"; not set for other
  // policies.
  std::optional<RandAugment> numbers;

  RandAugment rand() const { return numbers.value_or(RandAugment{}); }
  // Returns "none", "trivial", "rand" or "rand:N:M".
  std::string text() const;
  // Parses such a text. Throws std::invalid_argument, whose message says what was found and what
  // was expected.
  static AutoAugmentPolicy parse(const std::string& text);
  bool operator==(const AutoAugmentPolicy&) const = default;
};

// The kinds of data that --data can name.
enum class DataSource : std::uint8_t { synthetic, file };
DataSource data_source(std::string_view data);

struct TrainOptions {
  // The network, the data and the folder of the results. If the data are synthetic, the random
  // images have `size` x `size` pixels and `classes` classes.
  std::string model, data, out;
  // Replaces the weights of a model file by random ones.
  bool reinitialise = false;
  // The file of the initial weights; empty: random weights, or those of the model file.
  std::string init;
  std::int64_t classes = 10;
  // The network gets images of size x size pixels; 0: the size of the data.
  std::int64_t size = 0;
  std::int64_t limit_train = 0, limit_test = 0;  // the number of samples used; 0: all
  Feed feed = Feed::slice;
  std::int64_t crop_padding = 0, cutout = 0;  // pixels; 0: off
  bool flip = false, random_resized_crop = false;
  // Strengths of brightness, contrast, saturation and hue; empty: off.
  std::vector<double> color_jitter;
  AutoAugmentPolicy auto_augment;
  // One weight per output of the network; empty: only the first output has a loss.
  std::vector<double> loss_weights;
  // The rate of stochastic depth; below 0: the network's own rate.
  double drop_path = -1;
  double random_erasing = 0;  // share of the images in which a rectangle is erased
  // Two ways to mix two images; 0: off. The share of each image is random, by the beta distribution
  // whose two parameters both equal this option.
  double mixup = 0, cutmix = 0;
  bool mixes() const { return mixup > 0 || cutmix > 0; }
  // The number of neighbouring images of a batch that stay together in a part and on a rank.
  int images_together() const { return mixes() ? kernels::kMixedTogether : 1; }
  // Test images are resized so that their short side has this many pixels, before the centre is cut
  // out. 0: test images are not resized.
  std::int64_t test_resize = 0;
  bool data_on_device = false;

  // The length of the run. Exactly one of these two is not 0.
  std::int64_t epochs = 0, steps = 0;
  std::int64_t global_batch = 0;
  // The number of parts into which a step divides its global batch. The step computes the parts one
  // after the other.
  std::int64_t accumulate = 1;
  // Returns the most images that one of `replicas` ranks or groups of ranks gets of a part.
  std::int64_t images_of_replica(int replicas) const;

  kernels::OptimizerKind optimizer = kernels::OptimizerKind::sgd;
  double learning_rate = 0.1, momentum = 0.9, weight_decay = 0;
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // for adamw
  double trust_coefficient = 0.001;                   // for lars
  double clip_gradient_norm = 0;                      // 0: no clipping
  double label_smoothing = 0;
  Parametrisation parametrisation = Parametrisation::standard;
  std::int64_t base_width = 1;      // for mup
  std::vector<std::string> freeze;  // patterns of parameter names
  bool freeze_batch_norm = false;
  std::vector<std::string> rate;  // each is "PATTERN=FACTOR"
  // The decay of the moving averages of weights and statistics; 0: no averages.
  double ema = 0;
  bool sync_batch_norm = true;

  ScheduleKind schedule = ScheduleKind::constant;
  RateScaling scale_learning_rate = RateScaling::none;
  std::int64_t base_batch = 256;
  double warmup_epochs = 0;
  std::int64_t warmup_steps = 0;
  // Milestones are in epochs if --epochs is given, and in steps if --steps is given.
  std::vector<double> milestones;
  double gamma = 0.1, final_learning_rate = 0, power = 1;
  double one_cycle_rise = 0.3, one_cycle_initial_division = 25, one_cycle_final_division = 1e4;
  Anneal one_cycle_anneal = Anneal::cosine;

  kernels::Backend backend = kernels::Backend::cpu;
  Precision precision = Precision::fp32;
  // The number of ranks that divide a training step among them (--partition); 1: every rank
  // computes whole steps.
  std::int64_t partition = 1;
  std::uint64_t memory_limit = 0;  // most bytes of one device; 0: no limit
  // The most bytes of host memory that one rank may use for activations that do not fit in the
  // memory of its device (--memory-limit); 0: none.
  std::int64_t host_memory = 0;
  // CUDA: the file of measured kernel choices; empty: none.
  std::string tuning_file;
  // CUDA: the number of operations that may run at the same time, or auto.
  Lanes lanes;
  // The number of threads of one rank; 0: the host's cores divided by its ranks.
  std::int64_t threads = 0;
  std::int64_t seed = 1;
  // The seconds that ranks wait for another rank before they fail.
  double timeout = 300;

  // The specification of trainings that run together (--members); empty: one training runs alone.
  std::string members;
  // After every so many epochs the worse half of the members stops; 0: off.
  std::int64_t halving = 0;

  bool resume = false, overwrite = false;
  // If checkpoint_every_steps is not 0, it overrides checkpoint_every_epochs.
  std::int64_t checkpoint_every_epochs = 1, checkpoint_every_steps = 0;
  std::int64_t keep_checkpoints = 3;
  std::int64_t log_every = 10;  // number of steps between two lines of metrics.jsonl
  std::string trace;            // a file; empty: no trace
  std::int64_t eval_every = 1;  // number of epochs between tests; 0: one test at the end
  bool stop_on_divergence = true;
};

// Throws UsageError if the backend cannot compute in this precision.
void check_precision(kernels::Backend backend, Precision precision);

// Checks the options against each other. Throws UsageError, whose message is one line that names
// the flag.
void check_train_options(const TrainOptions& options, int ranks);

inline std::chrono::milliseconds timeout_of(const TrainOptions& options) {
  return std::chrono::milliseconds(std::llround(options.timeout * 1000));
}

// Returns the number of steps of the whole run.
std::int64_t total_steps(const TrainOptions& options, std::int64_t steps_per_epoch);

// Returns the learning-rate schedule. Scaling of the rate is done, and milestones and warm-up are
// converted to steps. Throws UsageError if they do not fit into the run.
LearningRateSchedule make_schedule(const TrainOptions& options, std::int64_t steps_per_epoch);

// Returns the options in the JSON form that manifest.json and checkpoints hold. Keys are the flags
// without their dashes.
nlohmann::json to_json(const TrainOptions& options);
// Reads the output of to_json. A missing option has its default, since an older version may have
// written the JSON. Unknown keys are ignored. Throws std::runtime_error that names `file` and the
// option if a value is not valid.
TrainOptions options_from_json(const nlohmann::json& json, const std::string& file);

}  // namespace convoy::app
