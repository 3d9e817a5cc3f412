// Evaluates the operations of a file whose inputs are all constants: the arithmetic of shapes, and
// weights that are transposed or reshaped.
#pragma once

#include <optional>
#include <vector>

#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

// Returns the only output of the node, or nothing if the operation is unknown or is arithmetic with
// weights. An absent input is null. An operation that only moves elements keeps the name of its
// input, so that a weight is still known as such. Throws std::runtime_error that names the node if
// the inputs do not fit together.
std::optional<Constant> evaluate(const FileNode& node, const std::vector<const Constant*>& inputs);

// Returns the index of an axis, which may count from the end. Fails if there is no such axis.
std::int64_t axis_of(const FileNode& node, std::int64_t axis, std::int64_t rank);
// Returns the axes that an attribute lists, or in newer opsets an input. Returns nothing if both
// are absent.
std::optional<Dims> axes_of(const FileNode& node, const Constant* input);
// Returns the extents after Reshape. In `target` 0 keeps an extent, and -1 takes the remaining
// elements.
Dims reshaped_dims(const FileNode& node, const Dims& from, const Dims& target);
// Return the extents after Unsqueeze and Squeeze. Squeeze without axes removes the axes of extent 1
// from axis `first` on.
Dims unsqueezed_dims(const FileNode& node, const Dims& from, const Constant* axes);
Dims squeezed_dims(const FileNode& node, const Dims& from, const Constant* axes, std::size_t first);
// Returns the tensor with its axes in this order.
Constant transposed(const Constant& from, const Dims& order);

}  // namespace convoy::app::onnx_import
