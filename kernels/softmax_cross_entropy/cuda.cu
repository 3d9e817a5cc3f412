// Softmax cross-entropy on the device. A block computes one row. The block that finishes last adds
// up the metrics of all rows.
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/cuda_reduce.cuh"
#include "kernels/device/cuda_resident.h"
#include "kernels/softmax_cross_entropy/row_target.h"
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

namespace convoy::kernels::cuda {
namespace {

constexpr int kRowThreads = 128;

struct Rows {
  int samples, classes;
  // The types of the first input and of the output: of logits and probabilities in forward, and of
  // probabilities and dlogits in backward.
  DType from, to;
  float weight;
  bool plain;
};

struct RowResult {
  double loss;
  std::int32_t rank;  // how many classes rank before the label; -1 if there is no label
};

__device__ float block_max(float value, float* shared) {
  for (int lane = 16; lane > 0; lane /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, lane));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[0];
  for (int warp = 1; warp < kRowThreads / 32; ++warp) value = fmaxf(value, shared[warp]);
  __syncthreads();
  return value;
}

__global__ void __launch_bounds__(kRowThreads)
    forward(const void* logits, const std::int32_t* labels, const MixParameters* mix,
            const StepControl* control, void* probabilities, Rows rows, RowResult* results, unsigned* ticket,
            const double* before, double* metrics, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, logits, labels, mix, control, probabilities, results, before, metrics);
  ticket += blockIdx.z;
  __shared__ float shared_max[kRowThreads / 32];
  __shared__ Values<3, double> shared[kRowThreads / 32];
  __shared__ Values<kLossMetrics, double> shared_metrics[kRowThreads / 32];
  __shared__ double log_sum;
  const std::int64_t first = std::int64_t{blockIdx.x} * rows.classes;
  const RowTarget target = row_target(labels, blockIdx.x, mix, control);
  const std::int32_t label = target.own;
  const float at_label = label >= 0 ? load_element(rows.from, logits, first + label) : 0.0f;

  float largest = -INFINITY;
  for (int j = threadIdx.x; j < rows.classes; j += kRowThreads)
    largest = fmaxf(largest, load_element(rows.from, logits, first + j));
  largest = block_max(largest, shared_max);

  // Three sums over the classes: exp(logit - largest), logit - largest, and the number of classes
  // that rank before the label.
  Values<3, double> sums{};
  for (int j = threadIdx.x; j < rows.classes; j += kRowThreads) {
    const float logit = load_element(rows.from, logits, first + j);
    sums.value[0] += expf(logit - largest);
    sums.value[1] += logit - largest;
    sums.value[2] += !(logit < at_label) && !(logit == at_label && j >= label);
  }
  sums = block_sums<kRowThreads>(sums, shared);
  if (threadIdx.x == 0) {
    log_sum = log(sums.value[0]);
    // The loss is minus the sum of target * log p, where log p = logit - largest - log_sum. The
    // elements of the target add up to one, so log_sum is added once.
    double at_labels = at_label - largest;
    if (target.share != 1) {
      const float at_other = load_element(rows.from, logits, first + target.other);
      at_labels += (1 - static_cast<double>(target.share)) * (at_other - at_label);
    }
    const double smoothing = rows.plain ? 0 : control->hyperparameters.label_smoothing;
    double loss = log_sum - (1 - smoothing) * at_labels;
    if (smoothing != 0) loss -= smoothing / rows.classes * sums.value[1];
    results[blockIdx.x] = {loss, label >= 0 ? static_cast<std::int32_t>(sums.value[2]) : -1};
  }
  __syncthreads();
  const float offset = largest + static_cast<float>(log_sum);
  const float rest = static_cast<float>(log_sum) - (offset - largest);
  for (int j = threadIdx.x; j < rows.classes; j += kRowThreads)
    store_element(rows.to, probabilities, first + j,
                  expf(load_element(rows.from, logits, first + j) - offset - rest));

  if (!draws_last_ticket(ticket, gridDim.x)) return;
  Values<kLossMetrics, double> total{};
  for (int row = threadIdx.x; row < rows.samples; row += kRowThreads) {
    const RowResult result = results[row];
    if (result.rank < 0) continue;
    total.value[0] += result.loss;
    total.value[1] += result.rank < 1;
    total.value[2] += result.rank < 5;
    total.value[3] += 1;
  }
  total = block_sums<kRowThreads>(total, shared_metrics);
  if (threadIdx.x == 0)
    for (int k = 0; k < kLossMetrics; ++k) put_metric(metrics, before, k, total.value[k], rows.weight);
}

__global__ void backward(const void* probabilities, const std::int32_t* labels, const MixParameters* mix,
                         void* dlogits, Rows rows, const StepControl* control, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, probabilities, labels, mix, dlogits, control);
  const std::int64_t elements = std::int64_t{rows.samples} * rows.classes;
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  const float scale = rows.weight / static_cast<float>(control->global_valid);
  const double smoothing = control->hyperparameters.label_smoothing;
  const float everywhere = static_cast<float>(smoothing / rows.classes);
  const float on_label = static_cast<float>(1 - smoothing);
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += turn) {
    const std::int64_t row = i / rows.classes;
    const RowTarget target = row_target(labels, row, mix, control);
    const float excess =
        load_element(rows.from, probabilities, i) - everywhere - on_label * target.on(i - row * rows.classes);
    store_element(rows.to, dlogits, i, target.own < 0 ? 0.0f : excess * scale);
  }
}

Rows rows_of(const char* operation, const LossProblem& problem, const KernelRequest& request) {
  const TensorDesc &from = request.inputs[0], &to = request.outputs[0];
  return {static_cast<int>(from.shape[0]),
          static_cast<int>(from.shape[1]),
          common_dtype(operation, {&from}),
          common_dtype(operation, {&to}),
          problem.weight,
          problem.plain};
}

}  // namespace

Kernel softmax_cross_entropy_forward(const LossProblem& problem, KernelRequest& request) {
  const Rows rows = rows_of("softmax_cross_entropy_forward", problem, request);
  const auto body = [=](const BoundOperands& b, unsigned* ticket, Stream stream) {
    const StepControl* control = b.control();
    launch(forward, rows.samples, kRowThreads, stream, b.members, b.inputs[0], b.in<std::int32_t>(1),
           mix_of(b, forward_inputs(problem)), control, b.outputs[0], rows, b.scratch<RowResult>(), ticket,
           metrics_before(b, problem.auxiliary), b.out<double>(1));
  };
  return ticketed_kernel(body, 1, {}, sizeof(RowResult) * static_cast<std::size_t>(rows.samples));
}

Kernel softmax_cross_entropy_backward(const LossProblem& problem, KernelRequest& request) {
  const Rows rows = rows_of("softmax_cross_entropy_backward", problem, request);
  const std::int64_t elements = request.inputs[0].shape.elements();
  const auto body = [=](const BoundOperands& b, Stream stream) {
    const StepControl* control = b.control();
    launch(backward, grid_for(elements), kThreads, stream, b.members, b.inputs[0], b.in<std::int32_t>(1),
           mix_of(b), b.outputs[0], rows, control);
  };
  if (rows.from == rows.to) return device_kernel(body, {{0, 0}});
  return device_kernel(body);
}

}  // namespace convoy::kernels::cuda
