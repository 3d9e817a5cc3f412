#include "app/timing/single_device_step.h"

#include "app/median.h"
#include "app/timing/step_times.h"
#include "comm/single_rank.h"

namespace convoy::app {

double time_single_device_step(const Network& network, SessionOptions options) {
  constexpr int kWarmUp = 5, kSteps = 30;
  options.input = {};
  options.memory_limit = 0;  // which its own input may miss by little
  options.tuning_file = {};
  comm::SingleRank alone;
  Session session(network, options, alone);
  fill_batch(session, 1, 1);
  time_steps(session, kWarmUp);
  return median(time_steps(session, kSteps).ms);
}

}  // namespace convoy::app
