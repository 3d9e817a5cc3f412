// The training step as a static graph: every tensor and every operation of forward and backward, in
// an order in which they can run. It knows shapes and dependences. Layouts, addresses and streams
// are decided when it is compiled (app/compile).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "app/graph/node_op.h"
#include "app/model/parameter.h"
#include "kernels/device/tensor.h"

namespace convoy::app {

using TensorId = int;  // index into StepGraph::tensors

enum class TensorRole : std::uint8_t {
  images,          // [N, C, H, W] from the loader, or the stored pixels (passes/device_input.h)
  labels,          // i32 [N], -1 for samples that are not there
  transforms,      // u8 [N, sizeof(SampleTransform)], how the stored pixels become images
  mix,             // i32 [kMixWords], how samples are mixed (kernels/device/mix_parameters.h)
  parameter,       // lives as long as the run
  parameter_copy,  // a parameter in bf16 (passes/precision.h)
  gradient,        // belongs to a parameter; summed over the ranks
  state,           // running statistics: live as long as the run, not trained
  metrics,         // f64 [4], summed over the ranks: loss, top-1 hits, top-5 hits, samples
  activation,      // everything that lives inside one step
  host             // an activation that waits in host memory
};

struct Tensor {
  std::string name;
  TensorRole role = TensorRole::activation;
  kernels::DType dtype = kernels::DType::f32;
  kernels::Shape shape;
  // A gradient's partner is its parameter or activation; both have the same layout.
  TensorId partner = -1;
  bool full_precision = false;  // stays f32 where activations are bf16
};

enum class Phase : std::uint8_t { forward, backward };

struct Node {
  std::string layer;  // "layer1.0.conv1"
  NodeOp op;
  Phase phase = Phase::forward;
  std::vector<TensorId> inputs, outputs;
  double flops = 0;
  bool recompute = false;  // computes again what forward computed (recomputed.h)

  template <typename Op>
  bool is() const {
    return std::holds_alternative<Op>(op);
  }
  bool is_all_reduce() const { return is<AllReduce>(); }
  const Transfer* transfer() const { return std::get_if<Transfer>(&op); }   // null if it is none
  const HostCopy* host_copy() const { return std::get_if<HostCopy>(&op); }  // likewise
  // Returns the name for tables and traces: name_of(op), with "_again" if the node recomputes.
  std::string_view name() const;
};

struct TrainableParameter {
  TensorId tensor = -1, gradient = -1;  // no gradient if it is frozen or the step only evaluates
  ParameterSpec spec;
  TensorId copy = -1;  // in bf16, if products read that
};

struct StepGraph {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<TrainableParameter> parameters;  // in the order of the network's layers
  std::vector<std::pair<TensorId, ParameterSpec>> states;
  TensorId images = -1, labels = -1, transforms = -1, logits = -1, metrics = -1;
  TensorId probabilities = -1;  // f32 [N, classes], kept to the end of the step; -1 if nobody reads them then
  // The same content twice, so that images and labels can be mixed in different stages.
  TensorId mix_of_images = -1, mix_of_labels = -1;

  // Returns indices into `parameters` in the order in which backward finishes their gradients, then
  // those without a gradient. The flat buffers have this order.
  std::vector<int> parameters_by_gradient() const;
};

}  // namespace convoy::app
