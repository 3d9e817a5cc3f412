// Computes with constants element by element, and has functions that all operations on constants
// share. Used only by the evaluation (constants.h).
#pragma once

#include <optional>
#include <vector>

#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

using Inputs = std::vector<const Constant*>;  // the inputs of a node; null if absent

// Returns an input. Fails if it is absent.
const Constant& need(const FileNode& node, const Inputs& inputs, std::size_t index);
// Returns the number of elements. Fails if it is larger than any shape needs.
std::int64_t computed_elements(const FileNode& node, const Dims& dims);
// Returns the extents of a and b after broadcasting as in NumPy.
Dims broadcast_dims(const FileNode& node, const Dims& a, const Dims& b);
// Returns the element of a tensor of dims `of` that becomes element i of dims `to` by broadcasting.
std::int64_t broadcast_index(std::int64_t i, const Dims& to, const Dims& of);

// Evaluate nodes of two inputs, nodes of one input, casts and Where. Return nothing if the
// operation is not defined for such constants.
std::optional<Constant> binary(const FileNode& node, const Inputs& inputs);
std::optional<Constant> unary(const FileNode& node, const Inputs& inputs);
std::optional<Constant> cast(const FileNode& node, const Inputs& inputs);
std::optional<Constant> where(const FileNode& node, const Inputs& inputs);

}  // namespace convoy::app::onnx_import
