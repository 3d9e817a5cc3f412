// The training or evaluation step as a static graph: its tensors, and its operations in an order in
// which they can run. What an operation waits for follows from this order and its operands. N is
// the number of rows that a rank computes at once, of which the last may hold no sample.
//
// build_step_graph() (graph_builder.h) makes forward and backward, and app/graph/passes fuse nodes
// and choose types. compile_graph() (app/compile) chooses kernels, layouts and offsets, and adds
// nodes that change layouts. Passes on compiled graphs may then add updates of large parameters
// (compile/early_updates.h), transfers between stages (model_parallel/stage_graph.h), slices of the
// batch (compile/batch_slices.h), repeated operations and copies to the host
// (compile/repeated_runs.h). A session (app/execute) adds addresses, lanes, the sums of gradients
// and metrics over the ranks, and the update of the other parameters.
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
  // The gradient of a parameter, which the session sums over the ranks. If a node updates the
  // parameter (OptimizerUpdate), its gradient is an activation.
  gradient,
  // An optimizer state or the moving average of a parameter that a node updates. They live as long
  // as the run.
  optimizer_state,
  // Running statistics, which live as long as the run and are not trained.
  state,
  // f64 [4]: the sums of loss, top-1 hits, top-5 hits and samples over this rank's batch. The
  // session sums them over the ranks.
  metrics,
  activation,  // any tensor that lives inside one step
  host         // a copy of an activation in host memory
};

struct Tensor {
  // A parameter, its bf16 copy and a state have the name in their ParameterSpec. A gradient has the
  // name of its parameter with ".gradient", an optimizer state with ".optimizer0" or ".optimizer1",
  // an average with ".ema". A session finds their memory by role and name. Other names are for
  // messages.
  std::string name;
  TensorRole role = TensorRole::activation;
  // For the mask of a ReLU, CompiledGraph::descs has the real type and shape.
  kernels::DType dtype = kernels::DType::f32;
  kernels::Shape shape;
  // The tensor whose layout this one takes if its kernels allow that; -1 if none. A gradient names
  // its activation or parameter, or the bf16 copy of the parameter. An optimizer state names its
  // parameter. A slice of an activation names the activation, as does a tensor that gets its
  // content again (compile/repeated_runs.h).
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
  // The operands in the order that the header of the node's kernel states. Inputs that the node
  // changes in place (updates()) are no outputs, except that of an all-reduce. The second and later
  // slices of a node also have each whole tensor that they write as a last input. An activation is
  // the output of one node, except that these may share it: the slices of a node, the two nodes of
  // a receive, and a node and the all-reduce of its output.
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
  // The gradient is -1 unless the step trains the parameter (ParameterSpec::trained()).
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

  // Returns whether the node changes this input in place: running statistics that a batch norm
  // updates, all inputs of an OptimizerUpdate but the gradient, and what an all-reduce sums.
  bool updates(const Node& node, TensorId input) const;
  // Returns indices into `parameters`: first the parameters with a gradient, in the order in which
  // backward finishes the gradients, then the others.
  std::vector<int> parameters_by_gradient() const;
};

}  // namespace convoy::app
