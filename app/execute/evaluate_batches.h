// Evaluates a session on a source of batches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "app/execute/session.h"
#include "data/loader/batch.h"

namespace convoy::app {

// A batch that was evaluated. Each vector has one element per row of the batch.
struct EvaluatedBatch {
  // Index of the image in the image set; -1 in a row without an image, as in a short last batch.
  std::vector<std::int64_t> samples;
  std::vector<std::int32_t> labels;  // -1 if the image has no label
  // [samples of a full batch, classes]. Valid only during the call of VisitBatch.
  std::span<const float> probabilities;
};
using VisitBatch = std::function<void(const EvaluatedBatch& batch)>;

// Evaluates the session's member 0 on all batches of one pass over the source and returns the sums
// of their metrics. `first_image` is that of StepInput::load(). `visit`, which needs
// StepOptions::keep_probabilities, is called for each finished batch in order.
StepMetrics evaluate_batches(Session& session, data::BatchSource& source, std::int64_t first_image = 0,
                             const VisitBatch& visit = nullptr);

}  // namespace convoy::app
