// Batch normalisation layer (Ioffe & Szegedy 2015) over the channels of [N, C, H, W], with what fuse() folds into it: a
// residual added before a ReLU. A second input is the residual.
#pragma once

#include "app/graph/emitter.h"
#include "kernels/batch_norm/batch_norm.h"

namespace convoy::app {

struct BatchNorm {
  static constexpr std::string_view kKind = "batch_norm";
  double epsilon = 1e-5;
  double momentum = 0.1;       // weight of the batch in the running statistics
  double initial_scale = 1.0;  // 0 makes a residual block start as the identity
  bool relu = false;           // set by fuse()

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes inputs) const;
  std::vector<ParameterSpec> states(Shapes inputs) const;
  double flops(Shapes inputs) const { return 7.0 * static_cast<double>(inputs[0].elements()); }
  std::string attributes() const;
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;

 private:
  kernels::BatchNormProblem problem(const Emitter& emitter) const;
};

}  // namespace convoy::app
