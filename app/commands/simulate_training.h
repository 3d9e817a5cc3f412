// `convoy simulate --model`: weak and strong scaling of a training, predicted.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace convoy::app {

inline constexpr const char* kTrainingGroup = "Scaling of a training";  // of flags, in --help

struct TrainingSimulationFlags {
  std::string model, topology, precision, scaling = "both";  // precision empty: the profile's
  std::vector<std::string> profiles, collectives;
  std::vector<std::int64_t> ranks{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  std::int64_t batch = 0, global_batch = 0, size = 0, classes = 0, bucket_bytes = 0;

  void add_to(CLI::App& verb);
};

// Throws UsageError for flags that do not go together.
void simulate_training(const TrainingSimulationFlags& flags, bool json);

}  // namespace convoy::app
