// The structure of a file's network as text, without its weights.
#pragma once

#include <string>

#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

// Returns the same text for two files if they hold the same network: inputs, nodes with their
// attributes, the shapes of weights, and the values of all other constants.
std::string structure_of(const FileGraph& graph);

}  // namespace convoy::app::onnx_import
