// The options of a training run: their values, the checks across them, and the schedule that they
// give.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/compile/step_choices.h"
#include "app/compile/step_options.h"
#include "app/training/schedule.h"
#include "data/loader/image_op_settings.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

// Who reads the stored images: every rank its slice, or rank 0 all of them, which it scatters.
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

// The operations of RandAugment, 1 to kernels::kMostImageOps, and their magnitude, 0 to 30.
struct RandAugment {
  int operations = 2, magnitude = 9;
  bool operator==(const RandAugment&) const = default;
};

struct AutoAugmentPolicy {
  data::AutoAugment kind = data::AutoAugment::none;
  std::optional<RandAugment> numbers;  // of "rand:N:M"; "rand" alone has the default ones

  RandAugment rand() const { return numbers.value_or(RandAugment{}); }
  std::string text() const;  // "none", "trivial", "rand", "rand:N:M"
  // Throws std::invalid_argument that says what was found and expected.
  static AutoAugmentPolicy parse(const std::string& text);
  bool operator==(const AutoAugmentPolicy&) const = default;
};

struct TrainOptions {
  // Model and data. "synthetic" data have `classes` classes and `size` pixels a side.
  std::string model, data, out;
  bool reinitialise = false;  // the first values of a model file's weights are drawn
  std::string init;           // file of the first weights; empty: drawn from the seed
  std::int64_t classes = 10;
  std::int64_t size = 0;  // pixels a side that the network sees; 0: as the data has them
  std::int64_t limit_train = 0, limit_test = 0;  // samples used; 0: all
  Feed feed = Feed::slice;
  std::int64_t crop_padding = 0, cutout = 0;  // pixels; 0: off
  bool flip = false, random_resized_crop = false;
  std::vector<double> color_jitter;  // of brightness, contrast, saturation and hue; empty: off
  AutoAugmentPolicy auto_augment;
  std::vector<double> loss_weights;  // of the network's outputs; empty: the first alone
  double drop_path = -1;             // with_drop_path() at this rate; below 0: as the network has it
  double random_erasing = 0;         // share of the images that lose a rectangle
  double mixup = 0, cutmix = 0;      // alpha of the beta distribution of the shares; 0: off
  std::int64_t test_resize = 0;      // pixels of the short side before the centre crop of a test; 0: as it is
  bool data_on_device = false;

  // Length: exactly one of epochs and steps is not 0.
  std::int64_t epochs = 0, steps = 0;
  std::int64_t global_batch = 0;
  std::int64_t accumulate = 1;  // parts of a global batch that a step computes one after the other

  kernels::OptimizerKind optimizer = kernels::OptimizerKind::sgd;
  double learning_rate = 0.1, momentum = 0.9, weight_decay = 0;
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // adamw
  double trust_coefficient = 0.001;                   // lars
  double clip_gradient_norm = 0;                      // 0: off
  double label_smoothing = 0;
  std::vector<std::string> freeze;  // patterns of parameters' names
  bool freeze_batch_norm = false;
  std::vector<std::string> rate;  // "PATTERN=FACTOR"
  double ema = 0;                 // decay of the moving average of weights and statistics; 0: none
  bool sync_batch_norm = true;

  ScheduleKind schedule = ScheduleKind::constant;
  RateScaling scale_learning_rate = RateScaling::none;
  std::int64_t base_batch = 256;
  double warmup_epochs = 0;
  std::int64_t warmup_steps = 0;
  std::vector<double> milestones;  // epochs where --epochs is given, steps where --steps is
  double gamma = 0.1, final_learning_rate = 0, power = 1;
  double one_cycle_rise = 0.3, one_cycle_initial_division = 25, one_cycle_final_division = 1e4;
  Anneal one_cycle_anneal = Anneal::cosine;

  kernels::Backend backend = kernels::Backend::cpu;
  Precision precision = Precision::fp32;
  std::int64_t partition = 1;  // ranks that share one replica's step; 1: every rank trains a whole replica
  std::uint64_t memory_limit = 0;      // bytes of one device; 0: none
  std::int64_t host_memory = 0;        // bytes in which activations of one rank may wait; 0: none
  std::string tuning_file;             // CUDA: measured choices of kernels; empty: none
  std::int64_t lanes = kDefaultLanes;  // CUDA: operations that may run side by side
  std::int64_t threads = 0;            // of one rank; 0: this host's cores divided by its ranks
  std::int64_t seed = 1;
  double timeout = 300;  // seconds that ranks wait for one that does not come

  std::string members;       // what differs between trainings that run together; empty: one trains alone
  std::int64_t halving = 0;  // epochs after which the worse half of the members stops; 0: off

  bool resume = false, overwrite = false;
  std::int64_t checkpoint_every_epochs = 1, checkpoint_every_steps = 0;  // the steps win where not 0
  std::int64_t keep_checkpoints = 3;
  std::int64_t log_every = 10;  // steps
  std::string trace;            // file; empty: none
  std::int64_t eval_every = 1;  // epochs; 0: at the end only
  bool stop_on_divergence = true;
};

// Throws UsageError unless the backend computes in this precision.
void check_precision(kernels::Backend backend, Precision precision);

// Checks options against each other. Throws UsageError, one line that names the flag.
void check_train_options(const TrainOptions& options, int ranks);

inline std::chrono::milliseconds timeout_of(const TrainOptions& options) {
  return std::chrono::milliseconds(std::llround(options.timeout * 1000));
}

// Returns the steps of the whole run.
std::int64_t total_steps(const TrainOptions& options, std::int64_t steps_per_epoch);

// Returns the schedule with milestones and warm-up in steps and the scaled rate. Throws UsageError
// if they do not fit into the run.
Schedule make_schedule(const TrainOptions& options, std::int64_t steps_per_epoch);

// The options as manifests and checkpoints hold them: keys are the flags without their dashes.
nlohmann::json to_json(const TrainOptions& options);
// Reads the output of to_json. A missing option has its default, as in a run of an older version;
// unknown keys are passed over. Throws std::runtime_error naming `file` and the option if a value
// is not valid.
TrainOptions options_from_json(const nlohmann::json& json, const std::string& file);

}  // namespace convoy::app
