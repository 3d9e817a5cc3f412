// Element-wise arithmetic on constants, and helpers for other operations on constants. Used only by
// constants.cpp.
#pragma once

#include <optional>
#include <vector>

#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

using Inputs = std::vector<const Constant*>;  // the inputs of a node; null if absent

// Returns the input number `index` of a node. Fails if it is absent.
const Constant& need(const FileNode& node, const Inputs& inputs, std::size_t index);
// Returns the number of elements of a computed constant. Fails if it is implausibly large.
std::int64_t computed_elements(const FileNode& node, const Dims& dims);
// Returns the extents of `a` and `b` after broadcasting as in NumPy.
Dims broadcast_dims(const FileNode& node, const Dims& a, const Dims& b);
// Returns the index of the element of a tensor of shape `of` that becomes element `i` when the
// tensor is broadcast to shape `to`.
std::int64_t broadcast_index(std::int64_t i, const Dims& to, const Dims& of);

// Evaluate nodes with two inputs, nodes with one input, casts and Where. Return nothing if the
// operation cannot be evaluated for these constants.
std::optional<Constant> binary(const FileNode& node, const Inputs& inputs);
std::optional<Constant> unary(const FileNode& node, const Inputs& inputs);
std::optional<Constant> cast(const FileNode& node, const Inputs& inputs);
std::optional<Constant> where(const FileNode& node, const Inputs& inputs);

}  // namespace convoy::app::onnx_import
