// Declares the import of every supported ONNX operation. Each function imports one node.
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

// Import matrix products: convolutions and fully connected layers.
void import_conv(Importer&, const FileNode&);
void import_gemm(Importer&, const FileNode&);
void import_matmul(Importer&, const FileNode&);

// Import normalisations.
void import_batch_norm(Importer&, const FileNode&);
void import_layer_norm(Importer&, const FileNode&);
void import_channel_norm(Importer&, const FileNode&);
void import_group_norm(Importer&, const FileNode&);
void import_instance_norm(Importer&, const FileNode&);
void import_lrn(Importer&, const FileNode&);

// Import elementwise functions, dropout and softmax.
void import_relu(Importer&, const FileNode&);
void import_clip(Importer&, const FileNode&);
void import_leaky_relu(Importer&, const FileNode&);
void import_prelu(Importer&, const FileNode&);
void import_activation(Importer&, const FileNode&);  // Sigmoid, HardSwish, Silu, Swish
void import_hard_sigmoid(Importer&, const FileNode&);
void import_gelu(Importer&, const FileNode&);
void import_dropout(Importer&, const FileNode&);
void import_identity(Importer&, const FileNode&);
void import_cast(Importer&, const FileNode&);
void import_softmax(Importer&, const FileNode&);

// Import pooling and padding.
void import_max_pool(Importer&, const FileNode&);
void import_average_pool(Importer&, const FileNode&);
void import_global_pool(Importer&, const FileNode&);
// Imports ReduceMean and ReduceMax over the pixels.
void import_reduce(Importer&, const FileNode&);
void import_pad(Importer&, const FileNode&);

// Imports Add, Sub, Mul, Div and Sum of tensors and of a tensor and a constant.
void import_arithmetic(Importer&, const FileNode&);
void import_neg(Importer&, const FileNode&);

// Import operations that move elements.
void import_reshape(Importer&, const FileNode&);
void import_flatten(Importer&, const FileNode&);
void import_squeeze(Importer&, const FileNode&);
void import_unsqueeze(Importer&, const FileNode&);
void import_transpose(Importer&, const FileNode&);
void import_concat(Importer&, const FileNode&);
void import_split(Importer&, const FileNode&);
void import_slice(Importer&, const FileNode&);
void import_gather(Importer&, const FileNode&);
void import_shape(Importer&, const FileNode&);

// The window of a pool or a convolution. The arrays are {height, width}.
struct Window {
  std::array<int, 2> kernel, stride, dilation;
  kernels::PadProblem pads;  // from the attribute pads, or computed for auto_pad
};
// Reads kernel_shape (default: `kernel`), strides, dilations, pads and auto_pad of a node that
// reads an image.
Window window_of(const FileNode& node, const Dims& image, std::array<std::int64_t, 2> kernel,
                 bool ceil_mode = false);
int small(const FileNode& node, std::string_view what, std::int64_t value);

}  // namespace convoy::app::onnx_import
