// Writes a run's output on rank 0: the configuration before the first step, progress,
// metrics.jsonl, and summary.json at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "app/execute/session.h"
#include "app/model/weights/weights.h"
#include "app/model_parallel/plan.h"
#include "app/training/dataset.h"
#include "app/training/report/metrics.h"
#include "app/training/report/progress.h"
#include "app/training/report/report.h"
#include "app/training/report/step_times.h"
#include "app/training/train_options.h"

namespace convoy::app {

class ConfigurationTable;

struct StepRecord {
  // The number of finished steps of the whole run.
  std::int64_t step = 0;
  StepMetrics metrics;
  double learning_rate = 0;
  StepTiming timing;
};

// Describes a run as far as it is known before the first step.
struct RunPlan {
  std::vector<RankPlace> ranks;
  int threads = 1;
  std::int64_t steps_per_epoch = 1, total_steps = 1;
  std::optional<std::int64_t> resumed_step;
  std::optional<PartitionPlan> partition;
  std::int64_t frozen_parameters = 0;
  FitRows initial_weights;  // empty without --init
  // Text about the members, the trainings that run together; empty if one training runs alone.
  std::string members;
  // Text about the lanes (parallel sequences of operations) that --lanes auto chose; else empty.
  std::string lanes;
  // The memory that this rank uses for all members, by purpose.
  std::vector<MemoryUse> memory;
  std::ostream* output = nullptr;  // the stream that `Output::all` prints to
};

class RunReport {
 public:
  // The outputs of this rank:
  //   - `all`: writes the files and prints. Rank 0 uses this if one training runs alone.
  //   - `files`: only writes the files. The rank that trains a member (one of several trainings
  //     that run together) uses this for the member.
  //   - `none`: neither writes nor prints. The other ranks of a training that runs alone use this.
  enum class Output : std::uint8_t { none, files, all };
  // Writes manifest.json and prints the configuration, if `output` asks for this.
  RunReport(const TrainOptions& options, const RunPlan& plan, const Dataset& dataset, const Session& session,
            Output output);
  void print_configuration(const Dataset& dataset, const Session& session) const;

  void step(const StepRecord& record);
  // Reports a test. `average` is the test of the moving average, if there is one (--ema).
  void evaluation(std::int64_t step, const StepMetrics& test, const std::optional<StepMetrics>& average);
  void message(const std::string& line);
  // Returns whether the run was resumed after its last step, so that no step is left.
  bool nothing_to_do() const;
  bool has_summary() const;
  // Writes the summary. `ranks` are the times of all ranks; only rank 0 uses them.
  void finish(std::int64_t steps, const std::string& parameters_sha256, const std::vector<RankTimes>& ranks,
              const PeakMemory& peak);
  // Returns the mean times of this rank.
  RankTimes rank_times() const;
  const RunPlan& plan() const { return plan_; }

 private:
  void describe_partition(ConfigurationTable& table) const;
  std::int64_t parameter_count(const Session& session) const;

  const TrainOptions& options_;
  const RunPlan plan_;
  const bool writes_, prints_;
  std::unique_ptr<MetricsWriter> metrics_;
  Progress progress_;
  StepTimes times_;
  RecentRate recent_rate_;
  double train_loss_, test_accuracy_;
  std::optional<double> ema_test_accuracy_;
};

}  // namespace convoy::app
