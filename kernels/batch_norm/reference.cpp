// Batch normalisation in plain loops.
#include "kernels/activation/reference.h"

#include <algorithm>
#include <cmath>

#include "kernels/batch_norm/batch_norm.h"
#include "kernels/device/host_kernel.h"

namespace convoy::kernels::reference {
namespace {

// Calls visit(index in the image tensor, channel) for the samples in [first, last).
template <typename Visit>
void for_each_element(const ImageExtents& e, std::int64_t first, std::int64_t last, Visit visit) {
  const std::int64_t sample = e.c * e.pixels();
  for (std::int64_t i = first * sample; i < last * sample; ++i) visit(i, i / e.pixels() % e.c);
}

// Per-channel statistics, with which xhat = (x - mean) invstd.
struct Moments {
  std::vector<double> mean, variance, invstd;
  double count = 0;
};

Moments moments_of_sums(const BatchNormProblem& problem, const ImageExtents& e, const StepControl& control,
                        const double* sums) {
  Moments m{std::vector<double>(e.c, 0.0), std::vector<double>(e.c, 1.0), std::vector<double>(e.c), 0};
  m.count = double(problem.synchronised ? control.global_valid : control.valid) * double(e.pixels());
  for (std::int64_t c = 0; c < e.c; ++c) {
    if (m.count > 0) {
      m.mean[c] = sums[c] / m.count;
      m.variance[c] = std::max(0.0, sums[e.c + c] / m.count - m.mean[c] * m.mean[c]);
    }
    m.invstd[c] = 1 / std::sqrt(m.variance[c] + problem.epsilon);
  }
  return m;
}

// Computes y = [relu or activation](xhat gamma + beta [+ residual]). `residual` may be null.
void normalise(const BatchNormProblem& problem, const ImageExtents& e, const Moments& m, const float* x,
               const float* gamma, const float* beta, const float* residual, float* y) {
  for_each_element(e, 0, e.n, [&](std::int64_t i, std::int64_t c) {
    double value = (x[i] - m.mean[c]) * m.invstd[c] * gamma[c] + beta[c];
    if (residual != nullptr) value += residual[i];
    if (problem.activation) value = activation_value(*problem.activation, value);
    y[i] = static_cast<float>(problem.relu && value < 0 ? 0 : value);
  });
}

void check_images(const char* operation, const KernelRequest& request, std::initializer_list<int> inputs,
                  std::initializer_list<int> outputs) {
  for (const int i : inputs)
    require_shape(operation, "an image tensor", request.inputs[i], request.inputs[0].shape);
  for (const int i : outputs)
    require_shape(operation, "an image tensor", request.outputs[i], request.inputs[0].shape);
}

void check_sums(const char* operation, const TensorDesc& sums, std::int64_t channels) {
  require_shape(operation, "the sums", sums, {2, channels});
  require_dtype(operation, "the sums", sums, DType::f64);
}

}  // namespace

Kernel batch_norm_statistics(const BatchNormProblem&, KernelRequest& request) {
  const char* operation = "batch_norm_statistics";
  require_counts(operation, request, 1, 1);
  require_row_major(operation, request);
  const ImageExtents e = image_extents(request.inputs[0].shape);
  check_sums(operation, request.outputs[0], e.c);
  return host_kernel([=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const float* x = operands.in(0);
    double* sums = operands.out<double>(0);
    std::fill_n(sums, 2 * e.c, 0.0);
    for_each_element(e, 0, control->valid, [&](std::int64_t i, std::int64_t c) {
      sums[c] += x[i];
      sums[e.c + c] += double(x[i]) * x[i];
    });
  });
}

// Updates the running statistics by those of the batch.
static void update_running(const BatchNormProblem& problem, const Moments& m, float* mean, float* variance) {
  if (m.count == 0) return;
  const double keep = 1 - double(problem.momentum), unbiased = m.count > 1 ? m.count / (m.count - 1) : 1;
  for (std::size_t c = 0; c < m.mean.size(); ++c) {
    mean[c] = static_cast<float>(keep * mean[c] + problem.momentum * m.mean[c]);
    variance[c] = static_cast<float>(keep * variance[c] + problem.momentum * m.variance[c] * unbiased);
  }
}

Kernel batch_norm_forward(const BatchNormProblem& problem, KernelRequest& request) {
  const char* operation = "batch_norm_forward";
  require_batch_norm_activation(operation, problem);
  require_counts(operation, request, problem.residual ? 7 : 6, 1 + problem.relu_mask);
  if (problem.relu_mask)
    request.outputs[1] = {DType::i32, request.outputs[0].shape, Layout::row_major, nullptr};
  require_row_major(operation, request);
  const ImageExtents e = image_extents(request.inputs[0].shape);
  check_images(operation, request, {problem.residual ? 6 : 0}, {0});
  check_sums(operation, request.inputs[1], e.c);
  const auto body = [=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const Moments m = moments_of_sums(problem, e, *control, operands.in<double>(1));
    normalise(problem, e, m, operands.in(0), operands.in(2), operands.in(3),
              problem.residual ? operands.in(6) : nullptr, operands.out(0));
    if (problem.relu_mask)
      for_each_element(e, 0, e.n, [&](std::int64_t i, std::int64_t) {
        operands.out<std::int32_t>(1)[i] = operands.out(0)[i] > 0;
      });
    update_running(problem, m, operands.inout(4), operands.inout(5));
  };
  if (problem.residual) return host_kernel(body, {{0, 0}, {6, 0}});
  return host_kernel(body, {{0, 0}});
}

Kernel batch_norm_affine(const BatchNormProblem& problem, KernelRequest& request) {
  const char* operation = "batch_norm_affine";
  require_counts(operation, request, 5, 1);
  require_row_major(operation, request);
  const std::int64_t channels = request.inputs[1].shape[0];
  check_sums(operation, request.inputs[0], channels);
  require_shape(operation, "affine", request.outputs[0], {2 * channels});
  return host_kernel([=](const BoundOperands& operands) {
    const ImageExtents e{1, channels, 1, problem.pixels};
    const Moments m = moments_of_sums(problem, e, *operands.control(), operands.in<double>(0));
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto scale = static_cast<float>(m.invstd[c] * operands.in(1)[c]);
      operands.out(0)[2 * c] = scale;
      operands.out(0)[2 * c + 1] = static_cast<float>(operands.in(2)[c] - m.mean[c] * scale);
    }
    update_running(problem, m, operands.inout(3), operands.inout(4));
  });
}

Kernel batch_norm_inference(const BatchNormProblem& problem, KernelRequest& request) {
  const char* operation = "batch_norm_inference";
  require_batch_norm_activation(operation, problem);
  require_counts(operation, request, problem.residual ? 6 : 5, 1);
  require_row_major(operation, request);
  const ImageExtents e = image_extents(request.inputs[0].shape);
  check_images(operation, request, {problem.residual ? 5 : 0}, {0});
  const auto body = [=](const BoundOperands& operands) {
    Moments m{{operands.in(3), operands.in(3) + e.c}, {operands.in(4), operands.in(4) + e.c}, {}, 0};
    for (const double variance : m.variance) m.invstd.push_back(1 / std::sqrt(variance + problem.epsilon));
    const std::vector<float> zeros(e.c, 0.0f);
    if (problem.linear) m.mean.assign(e.c, 0.0);
    normalise(problem, e, m, operands.in(0), operands.in(1), problem.linear ? zeros.data() : operands.in(2),
              problem.residual ? operands.in(5) : nullptr, operands.out(0));
  };
  if (problem.residual) return host_kernel(body, {{0, 0}, {5, 0}});
  return host_kernel(body, {{0, 0}});
}

Kernel batch_norm_backward_reduce(const BatchNormProblem& problem, KernelRequest& request) {
  const char* operation = "batch_norm_backward_reduce";
  const bool has_y = problem.relu && problem.residual;
  require_batch_norm_flags(operation, problem);
  require_counts(operation, request, 5 + has_y + problem.second_gradient, 3 + problem.write_gradient);
  require_row_major(operation, request);
  const ImageExtents e = image_extents(request.inputs[0].shape);
  const int dy2_at = has_y ? 6 : 5;
  check_images(operation, request, {4, has_y ? 5 : 4, problem.second_gradient ? dy2_at : 4}, {});
  if (problem.write_gradient) check_images(operation, request, {}, {3});
  check_sums(operation, request.inputs[1], e.c);
  check_sums(operation, request.outputs[0], e.c);
  const auto body = [=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const Moments m = moments_of_sums(problem, e, *control, operands.in<double>(1));
    const float *x = operands.in(0), *gamma = operands.in(2), *beta = operands.in(3), *dy = operands.in(4);
    double* dsums = operands.out<double>(0);
    std::fill_n(dsums, 2 * e.c, 0.0);
    for_each_element(e, 0, control->valid, [&](std::int64_t i, std::int64_t c) {
      const double xhat = (x[i] - m.mean[c]) * m.invstd[c];
      double g = dy[i];
      if (problem.second_gradient) g += operands.in(dy2_at)[i];
      const bool passes = problem.relu_mask ? operands.in<std::int32_t>(5)[i] != 0
                          : has_y           ? operands.in(5)[i] > 0
                                            : xhat * gamma[c] + beta[c] > 0;
      if (problem.relu && !passes) g = 0;
      if (problem.activation) g *= activation_derivative(*problem.activation, xhat * gamma[c] + beta[c]);
      dsums[c] += g;
      dsums[e.c + c] += g * xhat;
      if (problem.write_gradient) operands.out(3)[i] = static_cast<float>(g);
    });
    if (problem.write_gradient)
      for_each_element(e, control->valid, e.n, [&](std::int64_t i, std::int64_t) { operands.out(3)[i] = 0; });
    for (std::int64_t c = 0; c < e.c; ++c) {
      operands.out(1)[c] = static_cast<float>(dsums[e.c + c]);
      operands.out(2)[c] = static_cast<float>(dsums[c]);
    }
  };
  if (problem.write_gradient) return host_kernel(body, {{4, 3}});
  return host_kernel(body);
}

Kernel batch_norm_backward(const BatchNormProblem& problem, KernelRequest& request) {
  const char* operation = "batch_norm_backward";
  require_batch_norm_flags(operation, problem);
  require_counts(operation, request, 6 + problem.second_input_gradient, 1);
  require_row_major(operation, request);
  const ImageExtents e = image_extents(request.inputs[0].shape);
  check_images(operation, request, {4, problem.second_input_gradient ? 6 : 4}, {0});
  check_sums(operation, request.inputs[1], e.c);
  check_sums(operation, request.inputs[5], e.c);
  const auto body = [=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const Moments m = moments_of_sums(problem, e, *control, operands.in<double>(1));
    const float *x = operands.in(0), *gamma = operands.in(2), *beta = operands.in(3);
    const double* dsums = operands.in<double>(5);
    for_each_element(e, 0, control->valid, [&](std::int64_t i, std::int64_t c) {
      const double xhat = (x[i] - m.mean[c]) * m.invstd[c];
      double g = operands.in(4)[i];
      const double normalised = xhat * gamma[c] + beta[c];
      if (problem.relu && !problem.write_gradient && !(normalised > 0)) g = 0;
      if (problem.activation && !problem.write_gradient)
        g *= activation_derivative(*problem.activation, normalised);
      const double centred = g - dsums[c] / m.count - xhat * dsums[e.c + c] / m.count;
      const double other = problem.second_input_gradient ? operands.in(6)[i] : 0;
      operands.out(0)[i] = static_cast<float>(gamma[c] * m.invstd[c] * centred + other);
    });
    for_each_element(e, control->valid, e.n, [&](std::int64_t i, std::int64_t) { operands.out(0)[i] = 0; });
  };
  if (problem.second_input_gradient) return host_kernel(body, {{0, 0}, {4, 0}, {6, 0}});
  return host_kernel(body, {{0, 0}, {4, 0}});
}

}  // namespace convoy::kernels::reference
