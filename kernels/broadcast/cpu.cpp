// Multiplies an image by a tensor, or adds a tensor to it, and computes the gradients. The tensor
// is repeated over samples and pixels, over pixels only, or not at all (Repeat). Works on row_major
// and blocked tensors, one plane at a time.
#include "kernels/broadcast/broadcast.h"
#include "kernels/device/planes.h"

namespace convoy::kernels::cpu {
namespace {

template <int kLanes, bool kAdd>
CONVOY_VECTORISED void forward_plane(const float* x, const float* factor, float* y, std::int64_t pixels) {
#pragma omp simd
  for (std::int64_t i = 0; i < pixels * kLanes; ++i)
    y[i] = kAdd ? x[i] + factor[i % kLanes] : x[i] * factor[i % kLanes];
}

template <int kLanes>
CONVOY_VECTORISED void multiply_backward_plane(const float* x, const float* factor, const float* dy,
                                               float* dx, std::int64_t pixels, double* sums) {
  sum_plane<kLanes>(
      pixels,
      [=](std::int64_t i, int lane) __attribute__((always_inline)) {
        const float value = x[i], gradient = dy[i];
        dx[i] = factor[lane] * gradient;
        return value * gradient;
      },
      sums);
}

template <int kLanes>
CONVOY_VECTORISED void sum_of_plane(const float* dy, std::int64_t pixels, double* sums) {
  sum_plane<kLanes>(
      pixels, [=](std::int64_t i, int) __attribute__((always_inline)) { return dy[i]; }, sums);
}

CONVOY_VECTORISED void multiply_piece(const float* a, const float* b, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] * b[i];
}

CONVOY_VECTORISED void product_gradients(const float* x, const float* factor, const float* dy, float* dx,
                                         float* dfactor, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = x[i], gradient = dy[i];
    dx[i] = factor[i] * gradient;
    dfactor[i] = value * gradient;
  }
}

// The factors of plane i, one per lane. They are zero in padding lanes, so that the products there
// stay zero.
template <int kLanes>
struct Factors {
  float of[kLanes] = {};
  Factors(const Planes& planes, Repeat repeat, std::int64_t i, const float* factor) {
    const std::int64_t first = repeat == Repeat::over_all ? i % planes.blocks * kLanes : i * kLanes;
    for (std::int64_t lane = 0; lane < planes.used_lanes(i); ++lane) of[lane] = factor[first + lane];
  }
};

template <bool kAdd>
Kernel forward(const char* operation, KernelRequest& request) {
  require_counts(operation, request, 2, 1);
  TensorDesc &x = request.inputs[0], &factor = request.inputs[1];
  match_layout(operation, request.outputs[0], x);
  require_shape(operation, "y", request.outputs[0], x.shape);
  const Repeat repeat = (kAdd ? repeated_term : repeat_of)(operation, factor.shape, x.shape);
  require_factor(operation, repeat, factor, x);
  if (repeat == Repeat::none)
    return host_kernel(
        [count = buffer_elements(x)](const BoundOperands& b) {
          parallel_pieces(count, kPiece, [&](std::int64_t begin, std::int64_t end) {
            multiply_piece(b.in(0) + begin, b.in(1) + begin, b.out(0) + begin, end - begin);
          });
        },
        {{0, 0}});
  const Planes planes = planes_of(operation, x);
  return with_lanes(planes.lanes, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    return host_kernel(
        [=](const BoundOperands& b) {
          for_each_plane(planes, [&](std::int64_t i) {
            const std::int64_t at = i * planes.elements();
            const Factors<kLanes> factors(planes, repeat, i, b.in(1));
            forward_plane<kLanes, kAdd>(b.in(0) + at, factors.of, b.out(0) + at, planes.pixels);
          });
        },
        {{0, 0}});
  });
}

// Stores the sums of the planes as the gradient of the factor.
void store_sums(const Planes& planes, Repeat repeat, const double* sums, float* to) {
  if (repeat == Repeat::over_all) return add_samples(planes, sums, to);
  for (std::int64_t i = 0; i < planes.count() * planes.lanes; ++i) to[i] = static_cast<float>(sums[i]);
}

std::size_t sum_bytes(const Planes& planes) {
  return static_cast<std::size_t>(planes.count() * planes.lanes) * sizeof(double);
}

Kernel equal_backward(std::int64_t count) {
  return host_kernel(
      [count](const BoundOperands& b) {
        parallel_pieces(count, kPiece, [&](std::int64_t begin, std::int64_t end) {
          product_gradients(b.in(0) + begin, b.in(1) + begin, b.in(2) + begin, b.out(0) + begin,
                            b.out(1) + begin, end - begin);
        });
      },
      {{0, 0}, {2, 0}});
}

}  // namespace

Kernel multiply_forward(const BroadcastProblem&, KernelRequest& request) {
  return forward<false>("multiply_forward", request);
}
Kernel broadcast_add_forward(const BroadcastProblem&, KernelRequest& request) {
  return forward<true>("broadcast_add_forward", request);
}

Kernel multiply_backward(const BroadcastProblem&, KernelRequest& request) {
  const char* operation = "multiply_backward";
  require_counts(operation, request, 3, 2);
  TensorDesc &x = request.inputs[0], &factor = request.inputs[1], &dfactor = request.outputs[1];
  for (TensorDesc* desc : {&request.inputs[2], &request.outputs[0]}) {
    match_layout(operation, *desc, x);
    require_shape(operation, "a gradient", *desc, x.shape);
  }
  const Repeat repeat = repeat_of(operation, factor.shape, x.shape);
  require_shape(operation, "dfactor", dfactor, factor.shape);
  for (TensorDesc* desc : {&factor, &dfactor}) require_factor(operation, repeat, *desc, x);
  if (repeat == Repeat::none) return equal_backward(buffer_elements(x));
  const Planes planes = planes_of(operation, x);
  return with_lanes(planes.lanes, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    return host_kernel(
        [=](const BoundOperands& b) {
          auto* const sums = b.scratch<double>();
          for_each_plane(planes, [&](std::int64_t i) {
            const std::int64_t at = i * planes.elements();
            const Factors<kLanes> factors(planes, repeat, i, b.in(1));
            std::fill_n(sums + i * kLanes, kLanes, 0.0);
            multiply_backward_plane<kLanes>(b.in(0) + at, factors.of, b.in(2) + at, b.out(0) + at,
                                            planes.pixels, sums + i * kLanes);
          });
          store_sums(planes, repeat, sums, b.out(1));
        },
        {{0, 0}, {2, 0}}, sum_bytes(planes));
  });
}

Kernel broadcast_add_backward(const BroadcastProblem&, KernelRequest& request) {
  const char* operation = "broadcast_add_backward";
  require_counts(operation, request, 1, 1);
  const TensorDesc& dy = request.inputs[0];
  const Repeat repeat = repeated_term(operation, request.outputs[0].shape, dy.shape);
  require_factor(operation, repeat, request.outputs[0], dy);
  const Planes planes = planes_of(operation, dy);
  return with_lanes(planes.lanes, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    return host_kernel(
        [=](const BoundOperands& b) {
          auto* const sums = b.scratch<double>();
          for_each_plane(planes, [&](std::int64_t i) {
            std::fill_n(sums + i * kLanes, kLanes, 0.0);
            sum_of_plane<kLanes>(b.in(0) + i * planes.elements(), planes.pixels, sums + i * kLanes);
          });
          store_sums(planes, repeat, sums, b.out(0));
        },
        {}, sum_bytes(planes));
  });
}

}  // namespace convoy::kernels::cpu
