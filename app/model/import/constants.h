// Evaluates nodes of a file whose inputs are all constants. These nodes compute shapes, or
// transpose and reshape weights.
#pragma once

#include <optional>
#include <vector>

#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

// Returns the only output of the node, or nothing if the operation is unknown or is arithmetic with
// weights. An absent input is null. If the operation only moves elements, the output keeps the name
// of the input, so a transposed weight is still known as a parameter. Throws std::runtime_error
// that names the node if the inputs do not fit together.
std::optional<Constant> evaluate(const FileNode& node, const std::vector<const Constant*>& inputs);

// Returns the index of an axis; a negative `axis` counts from the end. Fails if there is no such
// axis.
std::int64_t axis_of(const FileNode& node, std::int64_t axis, std::int64_t rank);
// Returns the axes that the node's attribute "axes" or, in newer opsets, `input` lists. Returns
// nothing if both are absent.
std::optional<Dims> axes_of(const FileNode& node, const Constant* input);
// Returns the extents after Reshape. In `target`, 0 keeps the extent of the input, and -1 stands
// for the extent that makes the number of elements right.
Dims reshaped_dims(const FileNode& node, const Dims& from, const Dims& target);
// Return the extents after Unsqueeze and Squeeze. Squeeze without axes removes the axes of extent 1
// from axis `first` on.
Dims unsqueezed_dims(const FileNode& node, const Dims& from, const Constant* axes);
Dims squeezed_dims(const FileNode& node, const Dims& from, const Constant* axes, std::size_t first);
// Returns the tensor with its axes in the order `order`.
Constant transposed(const Constant& from, const Dims& order);

}  // namespace convoy::app::onnx_import
