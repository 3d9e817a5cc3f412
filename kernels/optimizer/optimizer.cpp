// What the optimizers keep from step to step.
#include "kernels/optimizer/optimizer.h"

namespace convoy::kernels {

int optimizer_states(const OptimizerProblem& problem) {
  switch (problem.kind) {
    case OptimizerKind::sgd:
      return problem.momentum != 0 ? 1 : 0;
    case OptimizerKind::lars:
      return 1;
    case OptimizerKind::adamw:
      return 2;
  }
  return 0;
}

}  // namespace convoy::kernels
