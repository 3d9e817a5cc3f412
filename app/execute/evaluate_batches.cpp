#include "app/execute/evaluate_batches.h"

#include <deque>
#include <utility>

namespace convoy::app {

StepMetrics evaluate_batches(Session& session, data::BatchSource& source, std::int64_t first_image,
                             const VisitBatch& visit) {
  StepMetrics sum;
  // Samples and labels of the batches in flight, for `visit`. Without `visit` the queue stays
  // empty.
  std::deque<EvaluatedBatch> started;
  const auto finish = [&] {
    const StepResult result = session.finish_step();
    sum += result.metrics[0];
    if (!visit) return;
    started.front().probabilities = result.probabilities;
    visit(started.front());
    started.pop_front();
  };
  for (std::int64_t step = 0; step < source.steps_per_epoch(); ++step) {
    data::BatchLease batch = source.next();
    if (visit)
      started.push_back({{batch->samples, batch->samples + batch->capacity},
                         {batch->labels, batch->labels + batch->capacity},
                         {}});
    session.input().load(std::move(batch), first_image);
    session.start(StepKind::evaluate);
    if (session.steps_in_flight() > session.steps_ahead()) finish();
  }
  while (session.steps_in_flight() > 0) finish();
  return sum;
}

}  // namespace convoy::app
