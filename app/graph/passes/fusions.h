// Passes that let one kernel do the work of two nodes, which saves passes over memory. Every
// backend can do the first one, and the kernels of the reference and cuda backends can do all.
#pragma once

#include "app/graph/step_graph.h"

namespace convoy::app {

// Joins the gradients of slices that together are a whole tensor, in place of widening each with
// zeros and adding them. The results keep their bits.
void join_slice_gradients(StepGraph& graph);

// Lets convolutions and additions also write the sums that the batch norm after them needs. The
// sums over a concatenation are put together from those of its parts.
void fuse_statistics(StepGraph& graph);

// Lets a convolution whose input is the output of a ReLU write the gradient before that ReLU.
void fuse_relu_gradients(StepGraph& graph);

// Lets batch norms that add a residual keep a mask of their ReLU for backward, which then does not
// read their output.
void fuse_relu_masks(StepGraph& graph);

// Lets a convolution whose input is the output of a batch norm with a ReLU do the first pass of
// that batch norm's backward: add the other gradient, apply the ReLU and take the sums. Only some
// devices have kernels that are faster for it (kernels::conv2d_fuses_input_norm).
void fuse_norm_gradients(StepGraph& graph);

// Returns the mask that this batch norm writes for its ReLU. Adds it if there is none yet.
TensorId kept_relu_mask(StepGraph& graph, Node& forward);

// Runs the passes above, but for the first one, for a GPU, the last one if `input_norm`.
inline void fuse_for_gpu(StepGraph& graph, bool input_norm) {
  fuse_statistics(graph);
  fuse_relu_gradients(graph);
  fuse_relu_masks(graph);
  if (input_norm) fuse_norm_gradients(graph);
}

}  // namespace convoy::app
