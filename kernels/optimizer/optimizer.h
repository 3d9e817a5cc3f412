// Optimizers: update parameters, which lie in one flat buffer, in one launch. Also computes the
// norm and the scale for gradient clipping.
//   optimizer_update  {parameters, gradients, state..., [average]} -> {[copy]}
//                     f32 [n] each. Parameters, states and average are updated in place. There
//                     are optimizer_states() states, which start as zeros. average is the
//                     moving average of the parameters, if the problem asks for one. copy,
//                     bf16 [n], gets the updated parameters; it is optional, and on CUDA only.
//   moving_average    {values, average} -> {}
//                     f32 [n] each. average is updated in place, as optimizer_update does.
//   squared_norm      {gradients} -> {sum of squares f64 [1]}
//                     Ignores gradient_scale. The bits are the same for any number of threads.
//   clip_scale        {sum of squares f64 [1]} -> {scale f32 [1]}
//                     scale = min(1, largest_norm / norm); 1 if the norm is NaN. If the output
//                     is the control's gradient_scale, the whole gradient is clipped.
// The control gives the learning rate lr, gradient_scale (a factor of every gradient g), the step
// (from 0; AdamW's t is step + 1) and the hyperparameters. A segment's `rate` is a factor of lr,
// and its `decay` is a factor of wd.
//
//   sgd    v = m v + (g + wd w);  w -= lr v, or with Nesterov lr (g + wd w + m v), as in PyTorch
//   lars   v = m v + lr trust (g + wd w);  w -= v
//          trust = coefficient |w| / (|g| + wd |w|) for each segment, 1 if adapt is off or a norm
//          is zero (You, Gitman, Ginsburg, arXiv 1708.03888)
//   adamw  w -= lr (wd w + mhat / (sqrt(vhat) + epsilon)) (Loshchilov, Hutter, ICLR 2019)
//
// A moving average a with decay d is w itself after step 0, and a += (1 - d) (w - a) in later
// steps, as in PyTorch's AveragedModel.
#pragma once

#include <vector>

#include "kernels/device/kernel.h"
#include "kernels/device/philox.h"

namespace convoy::kernels {

enum class OptimizerKind : std::uint8_t { sgd, lars, adamw };

// The range of one parameter tensor in the flat buffers. Elements outside all segments are not
// updated.
struct ParameterSegment {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  float decay = 1;    // a factor of the weight decay; 0 for biases and norms
  bool adapt = true;  // lets LARS scale the rate of this segment
  float rate = 1;     // a factor of the learning rate
};

struct OptimizerProblem {
  OptimizerKind kind = OptimizerKind::sgd;
  bool velocity = true;                         // sgd keeps a velocity; if false, momentum is ignored
  bool averages = false;                        // keeps a moving average of the parameters
  std::vector<ParameterSegment> segments = {};  // in ascending order, without overlap
};

// Returns the number of state buffers: for sgd 1 (or 0 without velocity), for lars 1, for adamw 2.
int optimizer_states(const OptimizerProblem& problem);
// Returns the number of inputs of optimizer_update. If there is an average, it comes last.
inline int optimizer_inputs(const OptimizerProblem& problem) {
  return 2 + optimizer_states(problem) + (problem.averages ? 1 : 0);
}

struct MovingAverageProblem {};
// Throws std::invalid_argument unless the operands fit together. Returns the number of elements
// that each operand has.
std::int64_t check_moving_average(KernelRequest& request);

// Returns the factor r in average += r * (value - average): 1 in the first step, and 1 - decay
// later.
CONVOY_HOST_DEVICE inline float average_rate(const StepControl& control) {
  return control.step == 0 ? 1.0f : static_cast<float>(1 - control.hyperparameters.average_decay);
}

struct SquaredNormProblem {};

struct ClipProblem {};
// Throws std::invalid_argument unless the operands fit together.
void check_clip_scale(KernelRequest& request);

CONVOY_KERNEL(optimizer_update, OptimizerProblem);
CONVOY_KERNEL(squared_norm, SquaredNormProblem);
CONVOY_KERNEL(moving_average, MovingAverageProblem);
CONVOY_KERNEL_WITH_CPU(clip_scale, ClipProblem, reference::clip_scale);

}  // namespace convoy::kernels
