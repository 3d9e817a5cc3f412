// Makes convolutions on the device: requires layouts and types, and chooses the plan.
#include "kernels/batch_norm/batch_norm.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/conv2d/cuda/joined_pixels.h"
#include "kernels/conv2d/engines.h"
#include "kernels/conv2d/input_norm.h"
#include "kernels/conv2d/pieces.h"
#include "kernels/device/cuda_kernel.h"
#include "kernels/gemm/bench/measure.h"
#include "kernels/gemm/rungs.h"
#include "kernels/relu/relu.h"

namespace convoy::kernels::cuda {
namespace {

using conv::Direction;
using conv::Task;

Task task_of(const char* operation, Direction direction, const Conv2dProblem& problem, const Shape& x,
             const Shape& weights, const TensorDesc& y, DType type) {
  require_shape(operation, "y", y, conv2d_output_shape(problem, x, weights));
  for (const std::int64_t elements :
       {x[0] * x[2] * x[3], y.shape[0] * y.shape[2] * y.shape[3], weights.elements()})
    require_below_2g(operation, elements);
  Task task;
  task.direction = direction;
  task.geometry = {int(x[0]),
                   int(x[1]),
                   int(x[2]),
                   int(x[3]),
                   int(weights[0]),
                   int(y.shape[2]),
                   int(y.shape[3]),
                   int(weights[2]),
                   int(weights[3]),
                   {problem.stride[0], problem.stride[1]},
                   {problem.padding[0], problem.padding[1]},
                   {problem.dilation[0], problem.dilation[1]},
                   problem.groups};
  task.math = type == DType::bf16 ? gemm::Math::bf16 : problem.tf32 ? gemm::Math::tf32 : gemm::Math::fp32;
  task.bias = problem.bias;
  return task;
}

void require_affine(TensorDesc& affine, std::int64_t channels) {
  require_layout("conv2d", affine, Layout::row_major);
  require_dtype("conv2d", "affine", affine, DType::f32);
  require_shape("conv2d", "affine", affine, {2 * channels});
}

// Returns the plan for a batch of `batch` samples, of which the task's samples are a slice. The
// order of a sum over k does not depend on the number of samples, so each sample gets the same bits
// as in the whole batch. Throws std::invalid_argument if the plan does not suit the slice.
conv::Plan plan_of(const Task& task, std::int64_t batch) {
  if (batch == 0 || batch == task.geometry.n) return conv::chosen(task);
  Task whole = task;
  whole.geometry.n = int(batch);
  const conv::Plan plan = conv::chosen(whole);
  if (!conv::supports(plan.engine, task) ||
      conv::with_joined_pixels(task).joined != conv::with_joined_pixels(whole).joined)
    throw std::invalid_argument("conv2d: the kernel of the whole batch does not suit a slice of it");
  // If a candidate for the slice has the plan's name, return it: its workspace is that of the
  // slice, which may be smaller. Otherwise return the plan for the whole batch, whose workspace is
  // large enough.
  for (const conv::Plan& own : conv::candidates(plan.engine, task))
    if (own.to_string() == plan.to_string() && own.fuses_extra == plan.fuses_extra) return own;
  return plan;
}

void require_bias(const char* operation, TensorDesc& desc, std::int64_t k) {
  require_layout(operation, desc, Layout::row_major);
  require_dtype(operation, "the bias", desc, DType::f32);
  require_shape(operation, "the bias", desc, {k});
}

// Makes the kernel of a task. `fill` stores the operands in the engine's Buffers.
template <typename Fill>
Kernel kernel_of(const Task& task, const conv::Plan& plan, Fill fill) {
  Kernel kernel;
  kernel.workspace_bytes = plan.workspace_bytes;
  kernel.takes_members = true;
  kernel.bind = [=](const Operands& operands) {
    conv::Buffers buffers;
    buffers.workspace = operands.workspace;
    buffers.members = operands.members;
    fill(buffers, operands);
    return conv::bind(task, plan, buffers);
  };
  return kernel;
}

Kernel with_statistics(const Kernel& convolution, const KernelRequest& request) {
  KernelRequest pass{{request.outputs[0]}, {request.outputs[1]}};
  return followed_by(
      convolution, batch_norm_statistics(BatchNormProblem{}, pass),
      [](const Kernel& statistics, const Operands& operands) {
        void* const in[] = {operands.outputs[0]};
        void* const out[] = {operands.outputs[1]};
        return statistics.bind({in, out, operands.workspace, operands.control, operands.members});
      });
}

Kernel with_relu_gradient(const Kernel& convolution, const KernelRequest& request) {
  KernelRequest pass{{request.inputs[2], request.outputs[0]}, {request.outputs[0]}};
  return followed_by(convolution, relu_backward(ReluProblem{}, pass),
                     [](const Kernel& relu, const Operands& operands) {
                       void* const in[] = {operands.inputs[2], operands.outputs[0]};
                       void* const out[] = {operands.outputs[0]};
                       return relu.bind({in, out, operands.workspace, nullptr, operands.members});
                     });
}

conv::InputNorm input_norm_of(const BatchNormProblem& norm, const Operands& operands) {
  const auto in = operands.inputs, out = operands.outputs;
  return {.x = in[norm_x_at],
          .dy2 = in[norm_dy2_at],
          .mask = static_cast<const std::uint8_t*>(in[norm_mask_at]),
          .sums = static_cast<const double*>(in[norm_sums_at]),
          .dsums = static_cast<double*>(out[norm_dsums_at]),
          .dgamma = static_cast<float*>(out[norm_dgamma_at]),
          .dbeta = static_cast<float*>(out[norm_dbeta_at]),
          .epsilon = norm.epsilon,
          .synchronised = norm.synchronised};
}

}  // namespace

bool conv2d_fuses_input_norm() { return gemm::device_present() && gemm::device_facts().major == 9; }

Kernel conv2d_forward(const Conv2dProblem& problem, KernelRequest& request) {
  const char* operation = "conv2d_forward";
  const int affine_at = problem.bias ? 3 : 2;
  require_counts(operation, request, affine_at + problem.input_affine.has_value(),
                 writes_sums(problem) ? 2 : 1);
  TensorDesc &x = request.inputs[0], &weights = request.inputs[1], &y = request.outputs[0];
  for (TensorDesc* desc : {&x, &weights, &y}) require_activation_layout(operation, *desc);
  if (problem.bias) require_bias(operation, request.inputs[2], weights.shape[0]);
  const DType type = common_dtype(operation, {&x, &weights, &y});
  Task task = task_of(operation, Direction::forward, problem, x.shape, weights.shape, y, type);
  task.relu = problem.relu;
  task.statistics = problem.statistics;
  task.input_affine = problem.input_affine;
  if (problem.input_affine) require_affine(request.inputs[affine_at], x.shape[1]);
  if (writes_sums(problem)) {
    require_layout(operation, request.outputs[1], Layout::row_major);
    require_dtype(operation, "sums", request.outputs[1], DType::f64);
    require_shape(operation, "sums", request.outputs[1], {2, weights.shape[0]});
  }
  // Sums that are already known (sums_known) do not change the plan, so y has the same bits.
  const conv::Plan plan = plan_of(task, problem.batch);
  task.statistics = writes_sums(problem);
  const Kernel convolution = kernel_of(task, plan, [=](conv::Buffers& buffers, const Operands& operands) {
    buffers.images = operands.inputs[0];
    buffers.weights = operands.inputs[1];
    buffers.out = operands.outputs[0];
    if (problem.bias) buffers.bias = static_cast<const float*>(operands.inputs[2]);
    if (problem.input_affine) buffers.affine = static_cast<const float*>(operands.inputs[affine_at]);
    if (task.statistics) buffers.sums = static_cast<double*>(operands.outputs[1]);
    buffers.control = operands.control;
  });
  return task.statistics && !plan.fuses_extra ? with_statistics(convolution, request) : convolution;
}

Kernel conv2d_backward_data(const Conv2dProblem& problem, KernelRequest& request) {
  const char* operation = "conv2d_backward_data";
  require_input_norm_counts(operation, problem, request);
  TensorDesc &dy = request.inputs[0], &weights = request.inputs[1], &dx = request.outputs[0];
  // Without input_relu and input_norm there is no x. The variable x then refers to dy, which is
  // checked twice.
  TensorDesc& x = request.inputs[problem.input_relu || problem.input_norm ? 2 : 0];
  for (TensorDesc* desc : {&dy, &weights, &x, &dx}) require_activation_layout(operation, *desc);
  const DType type = common_dtype(operation, {&dy, &weights, &x, &dx});
  if (problem.input_relu || problem.input_norm) require_shape(operation, "x", x, dx.shape);
  Kernel pass;
  if (problem.input_norm) pass = norm_pass(batch_norm_backward_reduce, *problem.input_norm, request);
  Task task = task_of(operation, Direction::backward_data, problem, dx.shape, weights.shape, dy, type);
  task.bias = false;
  task.input_relu = problem.input_relu;
  task.input_norm = problem.input_norm.has_value();
  const conv::Plan plan = plan_of(task, problem.batch);
  Kernel convolution = kernel_of(task, plan, [=](conv::Buffers& buffers, const Operands& operands) {
    buffers.images = operands.inputs[0];
    buffers.weights = operands.inputs[1];
    buffers.out = operands.outputs[0];
    if (problem.input_relu) buffers.x = operands.inputs[2];
    if (problem.input_norm) buffers.norm = input_norm_of(*problem.input_norm, operands);
    buffers.control = operands.control;
  });
  if (plan.fuses_extra) {
    // Only the block that writes an element of g reads the same element of dy2, and it does so
    // before the write. So g may overwrite dy2. If dy is the same tensor as dy2, other blocks read
    // it, too; overwritten_inputs() then forbids to overwrite it.
    if (problem.input_norm) convolution.in_place = {{norm_dy2_at, 0}};
    return convolution;
  }
  if (problem.input_norm) return followed_by_norm_pass(convolution, pass);
  return problem.input_relu ? with_relu_gradient(convolution, request) : convolution;
}

Kernel conv2d_backward_weights(const Conv2dProblem& problem, KernelRequest& request) {
  if (problem.piece > 0)
    return backward_weights_in_pieces(Backend::cuda, conv2d_backward_weights, problem, request);
  const char* operation = "conv2d_backward_weights";
  require_counts(operation, request, problem.input_affine ? 3 : 2, problem.bias ? 2 : 1);
  TensorDesc &x = request.inputs[0], &dy = request.inputs[1], &dweights = request.outputs[0];
  for (TensorDesc* desc : {&x, &dy, &dweights}) require_activation_layout(operation, *desc);
  require_dtype(operation, "dweights", dweights, DType::f32);
  if (problem.bias) require_bias(operation, request.outputs[1], dweights.shape[0]);
  const DType type = common_dtype(operation, {&x, &dy});
  Task task = task_of(operation, Direction::backward_weights, problem, x.shape, dweights.shape, dy, type);
  task.input_affine = problem.input_affine;
  if (problem.input_affine) require_affine(request.inputs[2], x.shape[1]);
  return kernel_of(task, conv::chosen(task),
                   [bias = problem.bias, affine = problem.input_affine.has_value()](
                       conv::Buffers& buffers, const Operands& operands) {
                     buffers.images = operands.inputs[0];
                     buffers.dy = operands.inputs[1];
                     buffers.out = operands.outputs[0];
                     if (affine) buffers.affine = static_cast<const float*>(operands.inputs[2]);
                     if (bias) buffers.dbias = static_cast<float*>(operands.outputs[1]);
                   });
}

}  // namespace convoy::kernels::cuda
