// Makes the table of a run's configuration, which is printed before the first step:
//
//   Model ──────────────────────────────────
//     network            resnet18
//     parameters         11,173,962
//   Ranks ──────────────────────────────────
//     rank 0             node1, cpu, cores 0-3
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/compile/compiled_steps.h"
#include "app/training/report/report.h"
#include "app/training/train_options.h"

namespace convoy::app {

// Returns a number with a comma before every three digits, for example "11,173,962".
std::string with_thousands(std::int64_t number);
// Returns a number of bytes in a suitable unit, for example "512 B" or "1.50 GiB".
std::string format_bytes(std::uint64_t bytes);

class ConfigurationTable {
 public:
  // Starts a section. The rows that are added afterwards belong to it.
  void section(std::string title);
  void row(std::string name, std::string value);
  // Adds one row per rank. With more than sixteen ranks, consecutive ranks on one host share a row
  // if they have the same device and number of cores.
  void ranks(const std::vector<RankPlace>& places);
  // Returns the table with a newline at its end. Lines are wrapped to `columns`.
  std::string render(int columns = 80) const;

 private:
  struct Section {
    std::string title;
    std::vector<std::pair<std::string, std::string>> rows;
  };
  std::vector<Section> sections_;
};

// Returns names and values of the rows on optimizer, learning rate, loss, tests and checkpoints.
// The values are those in effect, for example the learning rate after scaling.
std::vector<std::pair<std::string, std::string>> training_rows(const TrainOptions& options,
                                                               std::int64_t steps_per_epoch);

// Returns names and values of the rows that say how the step was changed to fit into
// --memory-limit. Returns none if the step fits unchanged.
std::vector<std::pair<std::string, std::string>> memory_rows(const MemoryFit& fit);

}  // namespace convoy::app
