// Recognises operations that a file writes as groups of several nodes: SiLU, hard sigmoid, hard
// swish, GELU (with erf or with tanh), layer norm and group norm. An operation that the file writes
// as a single node is imported by its own function (operations.h).
#pragma once

#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

// Replaces the last node of every such group by one of these nodes:
//   Silu, HardSwish       {x}
//   HardSigmoid, Gelu     {x}, with ONNX's attributes
//   ChannelNorm           {x, weight, bias}, attributes axis and epsilon: layer norm over one axis
//   GroupNorm             {x, weight, bias}, attributes num_groups and epsilon; as in ONNX from
//                         opset 21 on, with one weight per channel
// Then removes the nodes on which no output of the file depends.
void recognise_patterns(FileGraph& graph);

}  // namespace convoy::app::onnx_import
