// A table of the configuration of a run, printed before the first step:
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

std::string with_thousands(std::int64_t number);  // "11,173,962"
std::string format_bytes(std::uint64_t bytes);    // "512 B", "1.50 GiB"

class ConfigurationTable {
 public:
  void section(std::string title);  // the rows that follow belong to it
  void row(std::string name, std::string value);
  // Adds one row a rank. With more than sixteen ranks, neighbours on one host with the same device
  // and number of cores share a row.
  void ranks(const std::vector<RankPlace>& places);
  // Returns the table, wrapped to `columns`, with a newline at its end.
  std::string render(int columns = 80) const;

 private:
  struct Section {
    std::string title;
    std::vector<std::pair<std::string, std::string>> rows;
  };
  std::vector<Section> sections_;
};

// Returns name and value of the rows on optimizer, learning rate, loss, tests and checkpoints. The
// values are those in force, such as the scaled rate.
std::vector<std::pair<std::string, std::string>> training_rows(const TrainOptions& options,
                                                               std::int64_t steps_per_epoch);

// Returns name and value of the rows on how a step was made to fit into its memory limit; none if
// nothing had to be done.
std::vector<std::pair<std::string, std::string>> memory_rows(const MemoryFit& fit);

}  // namespace convoy::app
