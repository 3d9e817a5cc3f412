// Batch normalisation layer (Ioffe & Szegedy 2015) over the channels of [N, C, H, W]. fuse() may
// add a ReLU to the layer. It may also add a residual, which is then the second input and is added
// before the ReLU. Instead of both, fuse() may add another activation. If weight and bias are
// frozen, training uses the running statistics and does not change them.
#pragma once

#include "app/model/layer.h"
#include "kernels/batch_norm/batch_norm.h"

namespace convoy::app {

CONVOY_NODE(BatchNormStatistics, batch_norm_statistics, BatchNormProblem);
CONVOY_NODE(BatchNormForward, batch_norm_forward, BatchNormProblem);
// Takes the place of BatchNormForward if the operations that read its output can normalise its
// input on their own (app/graph/passes/fuse_norm_inputs.cpp).
CONVOY_NODE(BatchNormAffine, batch_norm_affine, BatchNormProblem);
CONVOY_REPEATABLE_NODE(BatchNormInference, batch_norm_inference, BatchNormProblem);
CONVOY_NODE(BatchNormBackwardReduce, batch_norm_backward_reduce, BatchNormProblem);
CONVOY_NODE(BatchNormBackward, batch_norm_backward, BatchNormProblem);

struct BatchNorm {
  static constexpr std::string_view kKind = "batch_norm";
  using Nodes = std::tuple<BatchNormStatistics, BatchNormForward, BatchNormAffine, BatchNormInference,
                           BatchNormBackwardReduce, BatchNormBackward>;
  double epsilon = 1e-5;
  // Running statistics become (1 - momentum) * old + momentum * the statistics of the batch.
  double momentum = 0.1;
  // The initial value of the weights. A residual block starts as the identity if its last batch
  // norm has the value 0.
  double initial_scale = 1.0;
  // Whether a ReLU follows the norm. fuse() sets at most one of `relu` and `activation`.
  bool relu = false;
  std::optional<kernels::ActivationProblem> activation = std::nullopt;

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes inputs) const;
  std::vector<ParameterSpec> states(Shapes inputs) const;
  double flops(Shapes inputs) const {
    return (activation ? 11.0 : 7.0) * static_cast<double>(inputs[0].elements());
  }
  std::string attributes() const;
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;

 private:
  kernels::BatchNormProblem problem(const Emitter& emitter) const;
  void forward_of_frozen(Emitter& emitter, kernels::BatchNormProblem norm,
                         const std::vector<int>& inputs) const;
  void backward_of_frozen(Emitter& emitter) const;
};

}  // namespace convoy::app
