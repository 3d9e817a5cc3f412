#include "app/training/report/metrics.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "data/atomic_file.h"

namespace convoy::app {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* action) {
  throw std::runtime_error(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(errno)));
}

bool belongs_to(const std::string& line, std::int64_t resumed_step) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return false;
  const auto step = json.find("step");
  return step != json.end() && step->is_number_integer() && step->get<std::int64_t>() <= resumed_step;
}

void cut(const std::filesystem::path& path, std::int64_t resumed_step) {
  std::ifstream stream(path);
  if (!stream) {
    if (errno != ENOENT) fail(path, "read");
    return;
  }
  std::string kept;
  for (std::string line; std::getline(stream, line);) {
    if (belongs_to(line, resumed_step)) kept += line + "\n";
  }
  data::write_file_atomically(path, kept);
}

}  // namespace

MetricsWriter::MetricsWriter(std::filesystem::path path, std::optional<std::int64_t> resumed_step)
    : path_(std::move(path)) {
  if (resumed_step) cut(path_, *resumed_step);
  const int fresh = resumed_step ? 0 : O_TRUNC;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | fresh, 0666);
  if (descriptor_ < 0) fail(path_, "write");
}

MetricsWriter::~MetricsWriter() { ::close(descriptor_); }

void MetricsWriter::write(std::int64_t step, double epoch, const std::optional<StepMetricsLine>& train,
                          const std::optional<TestMetricsLine>& test,
                          const std::optional<TestMetricsLine>& average) {
  nlohmann::ordered_json line{{"step", step}, {"epoch", epoch}};
  if (train) {
    line.update({{"loss", train->loss},
                 {"learning_rate", train->learning_rate},
                 {"images_per_second", train->images_per_second},
                 {"step_ms", train->step_ms},
                 {"data_wait_ms", train->data_wait_ms},
                 {"exposed_comm_ms", train->exposed_comm_ms},
                 {"top1", train->top1},
                 {"top5", train->top5}});
  }
  if (test) line.update({{"test_loss", test->loss}, {"test_top1", test->top1}, {"test_top5", test->top5}});
  if (average)
    line.update({{"ema_test_loss", average->loss},
                 {"ema_test_top1", average->top1},
                 {"ema_test_top5", average->top5}});
  const std::string text = line.dump() + "\n";
  // Write each line with one call, so that a reader never sees a part of a line, even if the
  // process is killed.
  ssize_t written;
  do {
    written = ::write(descriptor_, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written >= 0 && written < static_cast<ssize_t>(text.size())) errno = ENOSPC;
  if (written != static_cast<ssize_t>(text.size())) fail(path_, "write");
}

void check_loss(double loss, std::int64_t step, double learning_rate) {
  if (std::isfinite(loss)) return;
  // A NaN may have a sign, which means nothing. Print it without the sign.
  throw DivergenceError(fmt::format(
      "step {}: found a loss of {}, expected a finite one: training diverged at learning rate {:.6g}; a "
      "lower --learning-rate, warm-up or --clip-gradient-norm may help",
      step, std::isnan(loss) ? std::fabs(loss) : loss, learning_rate));
}

}  // namespace convoy::app
