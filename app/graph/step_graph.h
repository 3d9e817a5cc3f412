// The training or evaluation step as a static graph: its tensors, and its operations in an order in
// which they can run. What an operation waits for follows from this order and its operands. N is
// the number of rows of this rank's batch, or of a part of it (StepOptions::accumulate). A row may
// hold no sample.
//
// build_step_graph() (graph_builder.h) makes forward and backward, and app/graph/passes fuse nodes
// and choose types. compile_graph() (app/compile) chooses kernels, layouts and offsets, and adds
// nodes that change layouts. Passes on compiled graphs may then
//   - add updates of large parameters (compile/early_updates.h),
//   - cut out a stage and add transfers to other stages (model_parallel/stage_graph.h),
//   - divide nodes into slices of the batch (compile/batch_slices.h),
//   - add repeated operations and copies to host memory (compile/repeated_runs.h).
// A session (app/execute) adds addresses, lanes, the sums of gradients and metrics over the ranks,
// and the update of the other parameters.
//
// Every pass keeps these rules:
//   - A node comes after the nodes whose outputs it reads, and before the update of a parameter
//     that it reads.
//   - A node lists what it reads as inputs and what it writes as outputs. What it changes in place
//     (updates()) is an input only. There are two exceptions: an all-reduce lists its tensor as
//     both. A slice after the first one lists every output that is a whole tensor once more, after
//     its other inputs.
//   - An activation is the output of one node. There are three exceptions: all slices of a node,
//     the two nodes of a receive, and a node and the all-reduce that sums its output in place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/graph/node_op.h"
#include "app/model/parameter.h"
#include "kernels/device/tensor.h"

namespace convoy::app {

using TensorId = int;  // index into StepGraph::tensors

enum class TensorRole : std::uint8_t {
  // The input: images [N, C, H, W] in f32 or bf16, or the bytes of stored pixels, from which nodes
  // make the images (app/graph/passes/device_input.h).
  images,
  // i32 [N]: the class of each sample; -1 in rows without a sample (data/loader/batch.h).
  labels,
  // u8 [N, sizeof(SampleTransform)]: how each sample's stored pixels become an image.
  transforms,
  // i32 [kMixWords]: how samples are mixed (kernels/device/mix_parameters.h).
  mix,
  parameter,       // a parameter, which lives as long as the run
  parameter_copy,  // a bf16 copy of a parameter (app/graph/passes/precision.h)
  // The gradient of a parameter, which the session sums over the ranks and gives to the optimizer.
  // If an OptimizerUpdate node updates the parameter, its gradient is an activation.
  gradient,
  // Operands of OptimizerUpdate nodes: optimizer states and moving averages of their parameters.
  // They live as long as the run. A session keeps those of other parameters outside of the graph.
  optimizer_state,
  // Running statistics, which live as long as the run and are not trained.
  state,
  // f64 [4]: the sums of loss, top-1 hits, top-5 hits and samples over this rank's batch. The
  // session sums them over the ranks.
  metrics,
  activation,  // any other tensor that lives inside one step
  host         // a copy of an activation in host memory
};

struct Tensor {
  // A parameter, its bf16 copy and a state have the name in their ParameterSpec. A gradient has the
  // name of its parameter with ".gradient", an optimizer state with ".optimizer0" or ".optimizer1",
  // an average with ".ema". A session finds their memory by role and name. Other names are for
  // messages.
  std::string name;
  TensorRole role = TensorRole::activation;
  // The type and the shape. Those of the mask of a ReLU are not used, because its kernel chooses
  // them (CompiledGraph::descs).
  kernels::DType dtype = kernels::DType::f32;
  kernels::Shape shape;
  // The tensor whose layout this one takes if its kernels allow that; -1 if none. The gradient of a
  // parameter always names the parameter or its bf16 copy, and the gradient of an activation the
  // activation. Slices, tensors that are computed or copied again, and optimizer states also name
  // the tensor that they belong to.
  TensorId same_layout_as = -1;
  // The tensor of the whole batch of which this one is a slice (app/compile/batch_slices.h); -1 if
  // it is no slice.
  TensorId slice_of = -1;
  bool full_precision = false;  // whether the tensor stays f32 if activations are bf16
};

enum class Phase : std::uint8_t { forward, backward };

struct Node {
  std::string layer;  // for example "layer1.0.conv1"
  NodeOp op;
  Phase phase = Phase::forward;
  // The operands in the order that the header of the node's kernel states.
  std::vector<TensorId> inputs, outputs;
  double flops = 0;  // of the node's batch or slice; a multiply-add counts as two
  // Whether the node belongs to backward and repeats a node of forward (app/graph/recomputed.h).
  bool recompute = false;
  // The number of the slice of the batch that the node computes (app/compile/batch_slices.h); -1 if
  // it computes the whole batch.
  int slice = -1;

  template <typename Op>
  bool is() const {
    return std::holds_alternative<Op>(op);
  }
  // Returns the name for tables and traces: name_of(op), and "_again" if the node repeats a node of
  // forward. Throws std::logic_error if such a name is missing.
  std::string_view name() const;
};

struct GraphParameter {
  // The gradient is -1 unless the step trains the parameter (ParameterSpec::trained()). Its role is
  // `gradient`, or `activation` if an OptimizerUpdate node reads it.
  TensorId tensor = -1, gradient = -1;
  ParameterSpec spec;
  // The bf16 copy of the parameter; -1 if there is none.
  TensorId copy = -1;
};

// A running statistic.
struct StateTensor {
  TensorId tensor = -1;
  ParameterSpec spec;
};

struct StepGraph {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  // The parameters in the order of the network's layers.
  std::vector<GraphParameter> parameters;
  std::vector<StateTensor> states;
  // -1 if the step, or this stage of it, does not use the tensor.
  TensorId images = -1, labels = -1, transforms = -1, metrics = -1;
  // f32 [N, classes], kept to the end of the step; -1 if nothing reads the probabilities after the
  // step.
  TensorId probabilities = -1;
  // How samples are mixed (TensorRole::mix), for the node that mixes the images and for the loss;
  // -1 if unused. Both tensors have the same content. Images and loss may be in different stages of
  // a partitioned step, so each stage needs its own.
  TensorId mix_of_images = -1, mix_of_labels = -1;

  // Returns whether the node changes `input`, which is one of its inputs, in place: running
  // statistics of a batch norm that trains, all inputs of an OptimizerUpdate but the gradient, and
  // what an all-reduce sums.
  bool updates(const Node& node, TensorId input) const;
  // Returns indices into `parameters`: first the parameters with a gradient, in the order in which
  // backward finishes the gradients, then the others.
  std::vector<int> parameters_by_gradient() const;
};

}  // namespace convoy::app
