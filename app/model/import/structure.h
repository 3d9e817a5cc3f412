// Writes the structure of a file's network as a text, without weights.
#pragma once

#include <string>

#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

// Returns the structure. It is the same for two files if they have the same inputs, nodes and
// attributes, shapes of weights, and values of all other constants.
std::string structure_of(const FileGraph& graph);

}  // namespace convoy::app::onnx_import
