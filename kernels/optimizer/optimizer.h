// Updates the parameters in one flat buffer, all segments in one launch, and computes the norm for
// clipping.
//   optimizer_update  {parameters, gradients, state..., [average]} -> {[copy]}
//                     f32 [n] each. Parameters and states are updated in place. There are
//                     optimizer_states() states, which start as zeros. average exists if the
//                     problem says so: the moving average of the updated parameters, in place.
//                     copy bf16 [n]: the updated parameters, rounded; optional, cuda only
//   moving_average    {values, average} -> {}
//                     f32 [n] each; the average is updated in place, as the optimizer does it
//   squared_norm      {gradients} -> {sum of squares f64 [1]}
//                     before gradient_scale; the same bits for any number of threads
//   clip_scale        {sum of squares f64 [1]} -> {scale f32 [1]}
//                     min(1, largest_norm / norm); 1 if the norm is NaN. With control's
//                     gradient_scale as its output it clips the whole gradient
// control gives learning_rate lr, gradient_scale (a factor on every gradient g), step (from 0;
// AdamW's t is step + 1) and the hyperparameters.
// A segment's rate is a factor of its lr.
//
//   sgd    v = m v + (g + wd w);  w -= lr v, or with Nesterov lr (g + wd w + m v), as in PyTorch
//   lars   v = m v + lr trust (g + wd w);  w -= v
//          trust = coefficient |w| / (|g| + wd |w|) for each segment, 1 if adapt is off or a norm
//          is zero (You, Gitman, Ginsburg, arXiv 1708.03888)
//   adamw  w -= lr (wd w + mhat / (sqrt(vhat) + epsilon)) (Loshchilov, Hutter, ICLR 2019)
//
// A moving average a with decay d is w itself in step 0, and a += (1 - d) (w - a) in later steps,
// as in PyTorch's AveragedModel.
#pragma once

#include <vector>

#include "kernels/device/kernel.h"
#include "kernels/device/philox.h"

namespace convoy::kernels {

enum class OptimizerKind : std::uint8_t { sgd, lars, adamw };

// The range of one parameter tensor in the flat buffers, in elements. Elements outside all segments
// are not updated.
struct ParameterSegment {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  bool decay = true;  // applies weight decay; false for biases and norms
  bool adapt = true;  // lets LARS scale the rate of this segment
  float rate = 1;     // factor of the learning rate
};

struct OptimizerProblem {
  OptimizerKind kind = OptimizerKind::sgd;
  bool velocity = true;                         // sgd keeps one; without it the momentum counts as 0
  bool averages = false;                        // keeps a moving average of the parameters
  std::vector<ParameterSegment> segments = {};  // in ascending order, without overlap
};

// Returns the number of state buffers: sgd 1 (0 without velocity), lars 1, adamw 2.
int optimizer_states(const OptimizerProblem& problem);
// Returns the number of inputs of optimizer_update. The average, if there is one, comes last.
inline int optimizer_inputs(const OptimizerProblem& problem) {
  return 2 + optimizer_states(problem) + (problem.averages ? 1 : 0);
}

struct MovingAverageProblem {};
// Throws std::invalid_argument unless the operands fit. Returns their elements.
std::int64_t check_moving_average(KernelRequest& request);

// Returns the rate at which a step moves an average to the new value: 1 - decay, but 1 in the first
// step.
CONVOY_HOST_DEVICE inline float average_rate(const StepControl& control) {
  return control.step == 0 ? 1.0f : static_cast<float>(1 - control.hyperparameters.average_decay);
}

struct SquaredNormProblem {};

struct ClipProblem {};
// Throws std::invalid_argument unless the operands fit.
void check_clip_scale(KernelRequest& request);

CONVOY_KERNEL(optimizer_update, OptimizerProblem);
CONVOY_KERNEL(squared_norm, SquaredNormProblem);
CONVOY_KERNEL(moving_average, MovingAverageProblem);
CONVOY_KERNEL_WITH_CPU(clip_scale, ClipProblem, reference::clip_scale);

}  // namespace convoy::kernels
