// Writes metrics.jsonl, with one JSON object per line:
//   every logged step   {"step", "epoch", "loss", "learning_rate", "images_per_second", "step_ms",
//                        "data_wait_ms", "exposed_comm_ms", "top1", "top5"}
//   every test          {"step", "epoch", "test_loss", "test_top1", "test_top5"}; with --ema also
//                        "ema_test_loss", "ema_test_top1", "ema_test_top5" of the moving average
//   a step that is logged and tested   one object with the keys of both
// Steps count from 1 over the whole run. Rates are over all ranks. Accuracies are from 0 to 1. A
// number that is not finite is written as null.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>

namespace convoy::app {

struct StepMetricsLine {
  double loss = 0, learning_rate = 0, images_per_second = 0;
  double step_ms = 0, data_wait_ms = 0, exposed_comm_ms = 0;
  double top1 = 0, top5 = 0;
};

struct TestMetricsLine {
  double loss = 0, top1 = 0, top5 = 0;
};

class MetricsWriter {
 public:
  // Starts a new file. If the run was resumed after `resumed_step` steps, continues the old file
  // instead, after removing its lines of later steps and an incomplete last line. Throws
  // std::runtime_error that names the file.
  MetricsWriter(std::filesystem::path path, std::optional<std::int64_t> resumed_step);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  // Appends one line and flushes the file. Throws std::runtime_error that names the file.
  void write(std::int64_t step, double epoch, const std::optional<StepMetricsLine>& train,
             const std::optional<TestMetricsLine>& test = std::nullopt,
             const std::optional<TestMetricsLine>& average = std::nullopt);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

struct DivergenceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws DivergenceError if `loss` is NaN or infinite. The message names step, loss and learning
// rate.
void check_loss(double loss, std::int64_t step, double learning_rate);

}  // namespace convoy::app
