#include "app/training/run_report.h"

#include <fmt/core.h>

namespace convoy::app {

void RunReport::step(const StepRecord& r) {
  if (r.step % 50 == 0)
    fmt::print("epoch {} step {} loss {:.6f} lr {:.5f} {:.1f} ms wait {:.2f} comm {:.2f}\n", r.epoch, r.step,
               r.metrics.loss(), r.learning_rate, r.step_ms, r.data_wait_ms, r.exposed_comm_ms);
}
void RunReport::evaluation(const StepRecord& r, const StepMetrics& t) {
  fmt::print("epoch {} test loss {:.5f} top1 {:.4f}\n", r.epoch, t.loss(), t.top1 / t.samples);
}

}  // namespace convoy::app
