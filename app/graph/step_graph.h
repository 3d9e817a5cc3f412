// The training step as a static graph: every tensor and every operation of forward and backward, in an order in which
// they can run. It knows shapes and dependences, not layouts, addresses or streams: compiling it (app/runtime) decides
// those. Nodes carry the maker of their kernel, so whatever runs the graph needs no knowledge of op kinds.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/model/parameter.h"
#include "kernels/batch_norm/batch_norm.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

using TensorId = int;

enum class TensorRole : std::uint8_t {
  images,  // [N, C, H, W], filled by the loader; or the stored pixels that the step reads (device_input.h)
  labels,  // i32 [N], -1 for samples that are not there
  transforms,  // u8 [N, sizeof(SampleTransform)], how the stored pixels become images
  mix,         // i32 [kMixWords], how samples are mixed with their partners (kernels/device/mix_parameters.h)
  parameter,   // lives as long as the run
  parameter_copy,  // of a parameter, in bf16 (precision.h)
  gradient,        // of a parameter; summed over the ranks
  state,           // lives as long as the run, not trained: running statistics
  metrics,         // f64 [4]: Σ loss, top-1 hits, top-5 hits, samples; summed over the ranks
  activation       // everything that lives inside one step
};

struct Tensor {
  std::string name;
  TensorRole role = TensorRole::activation;
  kernels::DType dtype = kernels::DType::f32;
  kernels::Shape shape;
  TensorId partner =
      -1;  // of a gradient: its parameter; of an activation's gradient: the activation (same layout)
};

enum class Phase : std::uint8_t { forward, backward };

using KernelMaker = std::function<kernels::Kernel(kernels::Backend, kernels::KernelRequest&)>;

// One end of a tensor's way to another part of a partitioned step (app/model_parallel/stage_programs.h). `begin` gives the
// buffer away, `finish` has it back.
struct TransferEnd {
  enum class Action : std::uint8_t { send_begin, send_finish, receive_begin, receive_finish };
  Action action = Action::send_begin;
  int transfer = -1;  // the same number at both ends
  int peer = -1;      // the other end's part
  bool begins() const { return action == Action::send_begin || action == Action::receive_begin; }
};

struct Node {
  std::string layer;  // "layer1.0.conv1"
  std::string kind;   // "conv2d_forward"
  Phase phase = Phase::forward;
  std::vector<TensorId> inputs, outputs;
  KernelMaker make;  // empty for all_reduce: the sum of inputs[0] over the ranks, in place
  double flops = 0;
  KernelMaker again = {};  // the same outputs, bit for bit, later in the step (recompute.h); may be empty
  KernelMaker with_statistics =
      {};  // gives batch norm's sums over outputs[0] too (fuse_statistics); may be empty
  KernelMaker with_relu_gradient =
      {};  // gives the gradient before a ReLU, whose output is one more input (fuse_relu_gradients); may be empty
  KernelMaker with_relu_mask =
      {};  // writes or reads a mask of a batch norm's ReLU (fuse_relu_masks); may be empty
  // Of a batch norm's backward_reduce of two gradients behind a ReLU, and of a node that gives one of them and can do its work
  // (fuse_norm_gradients); may be empty.
  std::optional<kernels::BatchNormProblem> reduces = std::nullopt;
  std::function<KernelMaker(const kernels::BatchNormProblem&)> with_input_norm = {};
  // Of inputs[0] or outputs[0]; only in the parts of a partitioned step.
  std::optional<TransferEnd> transfer = std::nullopt;
  bool is_all_reduce() const { return !make && !transfer; }
};

struct TrainableParameter {
  TensorId tensor = -1, gradient = -1;
  ParameterSpec spec;
  TensorId copy = -1;  // in bf16, where products read that
};

struct StepGraph {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<TrainableParameter> parameters;  // in the order of the network's layers
  std::vector<std::pair<TensorId, ParameterSpec>> states;
  TensorId images = -1, labels = -1, transforms = -1, logits = -1, metrics = -1;
  // The same parameters twice, so that a partitioned step can mix images and labels in different
  // parts.
  TensorId mix_of_images = -1, mix_of_labels = -1;

  // Parameters in the order in which backward finishes their gradients: the order of the flat buffers.
  std::vector<int> parameters_by_gradient() const;
};

// Lets convolutions and additions write the sums that a batch norm behind them needs, which saves a pass over their
// output. For backends whose kernels can: reference and cuda.
void fuse_statistics(StepGraph& graph);
// Lets a convolution whose input a ReLU gave write the gradient before it, which saves a pass over the input's
// gradient. For the same backends.
void fuse_relu_gradients(StepGraph& graph);
// Lets batch norms that add a residual keep for backward what their ReLU let through, in place of reading their output
// again. For the same backends.
void fuse_relu_masks(StepGraph& graph);
// The mask that this batch norm's forward, which can write one, writes; from now on, if not yet.
TensorId kept_relu_mask(StepGraph& graph, Node& forward);
// Lets a convolution whose input a batch norm with a ReLU gave write the gradient before that ReLU, with the one that came
// another way, and take the sums that the batch norm needs of it, which saves two passes over it. For devices whose kernels do
// so (kernels::conv2d_fuses_input_norm).
void fuse_norm_gradients(StepGraph& graph);

}  // namespace convoy::app
