// Numbers of a step: fp32; tf32, in which products of float32 tensors round their factors to 10 bits; bf16, in which
// activations and their gradients are stored as bf16. Parameters, their gradients, statistics, losses and reductions are
// float32 or wider in all three. In bf16 the weights of convolutions and linear layers have a bf16 copy, which the
// optimizer writes and the products read.
#pragma once

#include <string>

#include "app/graph/step_graph.h"

namespace convoy::app {

enum class Precision : std::uint8_t { fp32, tf32, bf16 };

Precision precision_of(const std::string& name);  // "fp32", "tf32", "bf16"; throws std::invalid_argument

// Rewrites a graph of float32 tensors for bf16.
void store_in_bf16(StepGraph& graph);

}  // namespace convoy::app
