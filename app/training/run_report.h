// What a run says about itself: the configuration before the first step, progress, metrics.jsonl, summary.json.
#pragma once

#include <cstdint>

#include "app/runtime/session.h"

namespace convoy::app {

struct StepRecord {
  std::int64_t epoch = 0, step = 0;  // from 0
  StepMetrics metrics;
  double learning_rate = 0, step_ms = 0, data_wait_ms = 0, exposed_comm_ms = 0;
};

class RunReport {
 public:
  void step(const StepRecord& record);
  void evaluation(const StepRecord& last, const StepMetrics& test);
};

}  // namespace convoy::app
