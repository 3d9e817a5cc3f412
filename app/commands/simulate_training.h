// `convoy simulate --model`: predicts weak and strong scaling of a training.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/compile/step_choices.h"

namespace convoy::app {

// The title in --help above the flags of `convoy simulate --model`.
inline constexpr const char* kTrainingGroup = "Scaling of a training";

enum class Scaling : std::uint8_t { weak, strong, both };
template <>
inline constexpr auto kChoices<Scaling> = std::to_array<Choice<Scaling>>({{"weak", Scaling::weak},
                                                                          {"strong", Scaling::strong},
                                                                          {"both", Scaling::both}});

struct TrainingSimulationFlags {
  std::string model, topology;
  // If this has no value, the precision of the profile is used, or, without a profile, bf16 on GPUs
  // and fp32 on CPUs.
  std::optional<Precision> precision;
  Scaling scaling = Scaling::both;
  std::vector<std::string> profiles, collectives;
  std::vector<std::int64_t> ranks{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  std::int64_t batch = 0, global_batch = 0, size = 0, classes = 0, bucket_bytes = 0;

  void add_to(CLI::App& verb);
};

// Predicts the training and prints the result. Throws UsageError if flags contradict each other.
void simulate_training(const TrainingSimulationFlags& flags, bool json);

}  // namespace convoy::app
