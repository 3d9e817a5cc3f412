// Passes that let one kernel do the work of two nodes, which saves passes over memory. Every
// backend can run the first pass below. Only the reference and CUDA backends have kernels for all
// of them.
#pragma once

#include <optional>

#include "app/graph/step_graph.h"

namespace convoy::app {

// Concatenates the gradients of slices of the channels (layer Slice) if the slices make up a whole
// tensor. Without this pass each gradient is extended with zeros to all channels, and the extended
// gradients are added. Both ways give the same bits.
void join_slice_gradients(StepGraph& graph);

// Lets a convolution or an addition also write the sums that the next batch norm needs. The sums
// over a concatenation are joined from the sums of its parts.
void fuse_statistics(StepGraph& graph);

// Applies to convolutions whose input is the output of a ReLU: their backward then writes the
// gradient before that ReLU.
void fuse_relu_gradients(StepGraph& graph);

// Lets a batch norm that adds a residual store a mask of its ReLU. Backward then reads the mask and
// not the output.
void fuse_relu_masks(StepGraph& graph);

// Lets the backward of a convolution do the first pass of a batch norm's backward. The convolution
// must read the output y of the batch norm, which must have a ReLU. Besides its gradient of y, the
// convolution's backward then adds the gradient of y from y's other reader, applies the derivative
// of the ReLU, and writes the batch norm's sums. This is faster on some devices only
// (kernels::conv2d_fuses_input_norm).
void fuse_norm_gradients(StepGraph& graph);

// Says where fuse_norm_inputs() is faster than a pass that normalises, which moves the tensor
// twice. The extra work costs a convolution 2 us and more (docs/results/convolution.md).
struct NormInputRule {
  std::int64_t least_elements = 6'000'000;  // of the batch norm's output
  std::int64_t most_filters = 512;          // of each convolution that reads it
};

// Lets 1x1 convolutions and their gradients of weights normalise the input of a batch norm, and
// apply its ReLU, as they read it. The batch norm then only computes a scale and a shift for each
// channel, and its output exists nowhere. The normalised values have the same bits, but sums may be
// added in another order. Call it after the other passes; kernels for it exist in bf16 only.
void fuse_norm_inputs(StepGraph& graph, const NormInputRule& rule);

// Returns the mask that this batch norm writes for its ReLU. Adds a mask if the batch norm writes
// none yet.
TensorId kept_relu_mask(StepGraph& graph, Node& forward);

// Runs the passes above for a GPU, except join_slice_gradients(), which suits every backend and is
// called separately. Runs fuse_norm_gradients() only if `norm_gradients` is set, and
// fuse_norm_inputs() only if there is a rule for it.
inline void fuse_for_gpu(StepGraph& graph, bool norm_gradients,
                         const std::optional<NormInputRule>& norm_inputs) {
  fuse_statistics(graph);
  fuse_relu_gradients(graph);
  fuse_relu_masks(graph);
  if (norm_gradients) fuse_norm_gradients(graph);
  if (norm_inputs) fuse_norm_inputs(graph, *norm_inputs);
}

}  // namespace convoy::app
