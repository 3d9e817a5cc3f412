// Recognises operations that a file writes as groups of several nodes, such as SiLU or layer norm.
// Operations that are single nodes in the file are imported without this (operations.h).
#pragma once

#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

// Replaces the last node of every such group by one of these nodes:
//   Silu, HardSwish         {x}
//   HardSigmoid, Gelu, LRN  {x}, with ONNX's attributes
//   ChannelNorm             {x, weight, bias}, attributes axis and epsilon: a layer norm of one
//                           axis
//   GroupNorm               {x, weight, bias}, attributes num_groups and epsilon, with one
//                           weight per channel as in ONNX since opset 21
// Then removes the nodes on which no output of the file depends.
void recognise_patterns(FileGraph& graph);

}  // namespace convoy::app::onnx_import
