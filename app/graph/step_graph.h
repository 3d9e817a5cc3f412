// The training or evaluation step as a static graph: its tensors, and its operations in an order in
// which they can run. What an operation waits for follows from this order and its operands. N is
// the number of samples in this rank's batch.
//
// build_step_graph() (graph_builder.h) makes forward and backward. Later passes add transfers
// between stages (model_parallel/stage_graph.h), updates of large parameters
// (compile/early_updates.h), slices of the batch (compile/batch_slices.h), repeated operations and
// copies to the host (compile/repeated_runs.h). compile_graph() (app/compile) chooses kernels,
// layouts and offsets. A session (app/execute) adds addresses, lanes, the sums of gradients and
// metrics over the ranks, and the update of the other parameters.
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
  // An optimizer state or the moving average of a parameter, which live as long as the run.
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
  // an average with ".ema". A session finds their memory by the name. Other names are for messages.
  std::string name;
  TensorRole role = TensorRole::activation;
  // For the mask of a ReLU, CompiledGraph::descs has the real type and shape.
  kernels::DType dtype = kernels::DType::f32;
  kernels::Shape shape;
  // The tensor whose layout this one takes if its kernels allow that; -1 if none. A gradient names
  // its activation or parameter, or the bf16 copy of the parameter. An optimizer state names its
  // parameter. Slices of an activation and second copies of it name the activation.
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
  // The operands in the order that the header of the node's kernel states. An input that the node
  // also changes (updates()) is no output, but that of an all-reduce is both. Only one node writes
  // each activation, or all slices of that node, or the two ends of a receive.
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

struct TrainableParameter {
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
  std::vector<TrainableParameter> parameters;
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

  // Returns whether the node changes this input in place: running statistics, and all inputs of an
  // OptimizerUpdate but the gradient.
  bool updates(const Node& node, TensorId input) const;
  // Returns indices into `parameters`: first the parameters with a gradient, in the order in which
  // backward finishes the gradients, then the others.
  std::vector<int> parameters_by_gradient() const;
};

}  // namespace convoy::app
