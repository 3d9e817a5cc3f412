// Runs a training step of a session from its start to its end.
#pragma once

#include "app/execute/session.h"

namespace convoy::test {

// Returns the metrics of member 0.
inline app::StepMetrics train_step(app::Session& session) {
  session.start(app::StepKind::train);
  return session.finish_step().metrics[0];
}

}  // namespace convoy::test
