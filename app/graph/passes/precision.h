// Rewrites a step for a precision. In tf32, products of float32 tensors round their factors to 10
// bits. In bf16, activations and their gradients are stored as bf16. Weights then have a bf16 copy,
// which the optimizer writes and products read. Parameters, their gradients, statistics, losses and
// reductions are float32 or wider in all precisions.
#pragma once

#include "app/graph/step_graph.h"

namespace convoy::app {

enum class Precision : std::uint8_t { fp32, tf32, bf16 };

// Rewrites a graph of float32 tensors for bf16.
void store_in_bf16(StepGraph& graph);

}  // namespace convoy::app
