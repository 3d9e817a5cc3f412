// Recognises operations that a file writes as several nodes: SiLU, hard sigmoid, hard swish, both
// forms of GELU, layer norm and group norm. Operations in other forms are recognised when their
// node is imported.
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
