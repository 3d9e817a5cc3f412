// The ONNX operations that can be imported. Each file lists its own operations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/model/import/importer.h"

namespace convoy::app::onnx_import {

struct Operation {
  std::string_view op;
  void (*import)(Importer& importer, const FileNode& node);
  // The attributes that the import understands. A node with any other attribute is refused.
  std::vector<std::string_view> attributes;
};

// Returns the import of the ONNX operation `op`, or null if it is not supported.
const Operation* find_operation(std::string_view op);
// Throws std::runtime_error that says which operations are supported.
[[noreturn]] void refuse(const FileNode& node);
// Throws std::runtime_error if the graph is no convolutional classifier, because it has attention,
// recurrence or operations of detection networks. The message says so.
void refuse_foreign(const FileGraph& graph);
// Throws std::runtime_error if the node has attributes that the operation does not know.
void check_attributes(const FileNode& node, const Operation& operation);

using Operations = std::vector<Operation>;
const Operations& product_operations();     // products.cpp: convolutions and fully connected layers
const Operations& norm_operations();        // normalisations.cpp
const Operations& activation_operations();  // activations.cpp: elementwise functions, softmax
const Operations& pool_operations();        // pools.cpp: pooling and padding
const Operations& arithmetic_operations();  // arithmetic.cpp: sums and products of two values
const Operations& move_operations();        // moves.cpp: operations that move elements

// The window of a pool or a convolution. The arrays are {height, width}.
struct WindowAttributes {
  std::array<int, 2> kernel, stride, dilation;
  kernels::PadProblem pads;  // from the attribute pads, or computed for auto_pad
};
// Reads kernel_shape (default: `kernel`), strides, dilations, pads and auto_pad of a node that
// reads an image.
WindowAttributes window_of(const FileNode& node, const Dims& image, std::array<std::int64_t, 2> kernel,
                           bool ceil_mode = false);
int small(const FileNode& node, std::string_view what, std::int64_t value);

}  // namespace convoy::app::onnx_import
