// Evaluates the operations of a file whose inputs are all constants: the arithmetic of shapes, and
// weights that are transposed or reshaped.
#pragma once

#include <optional>
#include <vector>

#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

// Returns the node's only output; null for an absent input. Nothing if this is no operation on
// constants: one that is not known, or arithmetic with weights. A result of arithmetic has no name;
// one that only moves elements keeps the name of its input. Throws std::runtime_error, which names
// the node, if the inputs do not fit together.
std::optional<Constant> evaluate(const FileNode& node, const std::vector<const Constant*>& inputs);

// Returns the index of an axis that may count from the end. Fails for others.
std::int64_t axis_of(const FileNode& node, std::int64_t axis, std::int64_t rank);
// Returns the axes that an attribute, or in newer opsets an input, lists; nothing if it is absent.
std::optional<Dims> axes_of(const FileNode& node, const Constant* input);
// Returns the dims that Reshape gives to a tensor: 0 keeps an extent, and -1 takes the rest.
Dims reshaped_dims(const FileNode& node, const Dims& from, const Dims& target);
// Return what Unsqueeze and Squeeze make. Squeeze without axes removes those of extent 1 from the
// place `first` on.
Dims unsqueezed_dims(const FileNode& node, const Dims& from, const Constant* axes);
Dims squeezed_dims(const FileNode& node, const Dims& from, const Constant* axes, std::size_t first);
// Returns the tensor with its axes in this order.
Constant transposed(const Constant& from, const Dims& order);

}  // namespace convoy::app::onnx_import
