// Applies PReLU to row_major and blocked tensors, one plane at a time.
#include "kernels/device/planes.h"
#include "kernels/prelu/prelu.h"

namespace convoy::kernels::cpu {
namespace {

template <int kLanes>
CONVOY_VECTORISED void forward_plane(const float* x, const float* slope, float* y, std::int64_t pixels) {
#pragma omp simd
  for (std::int64_t i = 0; i < pixels * kLanes; ++i) y[i] = x[i] > 0 ? x[i] : slope[i % kLanes] * x[i];
}

template <int kLanes>
CONVOY_VECTORISED void backward_plane(const float* x, const float* slope, const float* dy, float* dx,
                                      std::int64_t pixels, double* sums) {
  sum_plane<kLanes>(
      pixels,
      [=](std::int64_t i, int lane) __attribute__((always_inline)) {
        const float value = x[i], gradient = dy[i];
        dx[i] = value > 0 ? gradient : slope[lane] * gradient;
        return value > 0 ? 0.0f : value * gradient;
      },
      sums);
}

template <int kLanes>
struct Slopes {
  float of[kLanes] = {};
  Slopes(const Planes& planes, std::int64_t i, const float* slope, std::int64_t slopes) {
    for (std::int64_t lane = 0; lane < planes.used_lanes(i); ++lane)
      of[lane] = slope[(i % planes.blocks * kLanes + lane) % slopes];
  }
};

}  // namespace

Kernel prelu_forward(const PreluProblem&, KernelRequest& request) {
  const char* operation = "prelu_forward";
  require_counts(operation, request, 2, 1);
  match_layout(operation, request.outputs[0], request.inputs[0]);
  require_shape(operation, "y", request.outputs[0], request.inputs[0].shape);
  require_slope(operation, request.inputs[1], request.inputs[0].shape);
  const Planes planes = planes_of(operation, request.inputs[0]);
  const std::int64_t slopes = request.inputs[1].shape[0];
  return with_lanes(planes.lanes, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    return host_kernel(
        [=](const BoundOperands& b) {
          for_each_plane(planes, [&](std::int64_t i) {
            const Slopes<kLanes> slope(planes, i, b.in(1), slopes);
            forward_plane<kLanes>(b.in(0) + i * planes.elements(), slope.of, b.out(0) + i * planes.elements(),
                                  planes.pixels);
          });
        },
        {{0, 0}});
  });
}

Kernel prelu_backward(const PreluProblem&, KernelRequest& request) {
  const char* operation = "prelu_backward";
  require_counts(operation, request, 3, 2);
  match_layout(operation, request.inputs[2], request.inputs[0]);
  match_layout(operation, request.outputs[0], request.inputs[0]);
  for (const int i : {0, 2})
    require_shape(operation, "an input", request.inputs[i], request.outputs[0].shape);
  for (TensorDesc* slope : {&request.inputs[1], &request.outputs[1]})
    require_slope(operation, *slope, request.inputs[0].shape);
  require_shape(operation, "dslope", request.outputs[1], request.inputs[1].shape);
  const Planes planes = planes_of(operation, request.inputs[0]);
  const std::int64_t slopes = request.inputs[1].shape[0];
  const std::int64_t sums = planes.count() * planes.lanes;
  return with_lanes(planes.lanes, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    return host_kernel(
        [=](const BoundOperands& b) {
          auto* const sum = b.scratch<double>();
          for_each_plane(planes, [&](std::int64_t i) {
            const std::int64_t at = i * planes.elements();
            std::fill_n(sum + i * kLanes, kLanes, 0.0);
            const Slopes<kLanes> slope(planes, i, b.in(1), slopes);
            backward_plane<kLanes>(b.in(0) + at, slope.of, b.in(2) + at, b.out(0) + at, planes.pixels,
                                   sum + i * kLanes);
          });
          if (slopes > 1) return add_samples(planes, sum, b.out(1));
          double all = 0;  // the sum over all channels; the sums of padding channels are 0
          for (std::int64_t i = 0; i < sums; ++i) all += sum[i];
          b.out(1)[0] = static_cast<float>(all);
        },
        {{0, 0}, {2, 0}}, static_cast<std::size_t>(sums) * sizeof(double));
  });
}

}  // namespace convoy::kernels::cpu
