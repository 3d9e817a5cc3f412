// Group normalisation of row_major and blocked tensors. A plane is all pixels of one channel or
// block of channels (kernels/device/planes.h). Each plane is summed per channel, and then the sums
// of a group's channels are added up.
#include <cmath>

#include "kernels/device/planes.h"
#include "kernels/group_norm/group_norm.h"

namespace convoy::kernels::cpu {
namespace {

struct Groups {
  Planes planes;
  std::int64_t groups, channels;  // channels: how many channels a group has

  std::int64_t all() const { return planes.samples * groups; }
  double inverse_count() const { return 1.0 / static_cast<double>(channels * planes.pixels); }
  std::int64_t sums() const { return planes.count() * planes.lanes; }
  // Returns the sum of sums[channel] * factor(channel) over the channels of a group. `sums` is
  // [samples, blocks * lanes].
  template <typename Factor>
  double sum_of(std::int64_t group, const double* sums, const Factor& factor) const {
    const double* const sample = sums + group / groups * planes.padded_channels();
    const std::int64_t first = group % groups * channels;
    double sum = 0;
    for (std::int64_t c = first; c < first + channels; ++c) sum += sample[c] * factor(c);
    return sum;
  }
};

template <int kLanes>
struct Lanes {
  float of[kLanes] = {};
};
template <int kLanes, typename Value>
Lanes<kLanes> lanes_of(const Groups& g, std::int64_t i, const Value& value) {
  Lanes<kLanes> lanes;
  for (std::int64_t lane = 0; lane < g.planes.used_lanes(i); ++lane) {
    const std::int64_t c = i % g.planes.blocks * kLanes + lane;
    lanes.of[lane] = value(c, i / g.planes.blocks * g.groups + c / g.channels);
  }
  return lanes;
}

// Adds the sums of (x - mean)^power over a plane to `sums`, which has one sum per lane.
template <int kLanes, int power>
CONVOY_VECTORISED void sum_powers(const float* x, const float* mean, std::int64_t pixels, double* sums) {
  sum_plane<kLanes>(
      pixels,
      [=](std::int64_t i, int lane) __attribute__((always_inline)) {
        const float centred = x[i] - mean[lane];
        return power == 1 ? centred : centred * centred;
      },
      sums);
}

// Computes to = x * scale + shift or, if dy is not null, to = dy * by + x * scale + shift. `by`,
// `scale` and `shift` have one value per lane.
template <int kLanes>
CONVOY_VECTORISED void scale_plane(const float* x, const float* scale, const float* shift, const float* dy,
                                   const float* by, float* to, std::int64_t pixels) {
  if (dy == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < pixels * kLanes; ++i) to[i] = x[i] * scale[i % kLanes] + shift[i % kLanes];
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < pixels * kLanes; ++i)
      to[i] = dy[i] * by[i % kLanes] + (x[i] * scale[i % kLanes] + shift[i % kLanes]);
  }
}

// Adds the sums over a plane of dy (x - mean) invstd to `with_xhat`, and those of dy to `alone`.
// Both have one sum per lane.
template <int kLanes>
CONVOY_VECTORISED void sum_gradients(const float* x, const float* dy, const float* mean, const float* invstd,
                                     std::int64_t pixels, double* with_xhat, double* alone) {
  sum_plane<kLanes>(
      pixels,
      [=](std::int64_t i, int lane)
          __attribute__((always_inline)) { return dy[i] * ((x[i] - mean[lane]) * invstd[lane]); },
      with_xhat);
  sum_plane<kLanes>(
      pixels, [=](std::int64_t i, int) __attribute__((always_inline)) { return dy[i]; }, alone);
}

template <int kLanes>
void forward(const Groups& g, float epsilon, const BoundOperands& b) {
  auto* const sums = b.scratch<double>();
  float *mean = b.out(1), *invstd = b.out(1) + g.all();
  const auto one = [](std::int64_t) { return 1.0; };
  std::fill_n(mean, g.all(), 0.0f);
  for (const int power : {1, 2}) {
    for_each_plane(g.planes, [&](std::int64_t i) {
      std::fill_n(sums + i * kLanes, kLanes, 0.0);
      const auto means =
          lanes_of<kLanes>(g, i, [&](std::int64_t, std::int64_t group) { return mean[group]; });
      (power == 1 ? sum_powers<kLanes, 1> : sum_powers<kLanes, 2>)(b.in(0) + i * g.planes.elements(),
                                                                   means.of, g.planes.pixels,
                                                                   sums + i * kLanes);
    });
    for (std::int64_t group = 0; group < g.all(); ++group) {
      const double moment = g.sum_of(group, sums, one) * g.inverse_count();
      if (power == 1)
        mean[group] = static_cast<float>(moment);
      else
        invstd[group] = static_cast<float>(1 / std::sqrt(moment + epsilon));
    }
  }
  for_each_plane(g.planes, [&](std::int64_t i) {
    const std::int64_t at = i * g.planes.elements();
    const auto scale = lanes_of<kLanes>(
        g, i, [&](std::int64_t c, std::int64_t group) { return invstd[group] * b.in(1)[c]; });
    const auto shift = lanes_of<kLanes>(g, i, [&](std::int64_t c, std::int64_t group) {
      return static_cast<float>(b.in(2)[c] - double(mean[group]) * invstd[group] * b.in(1)[c]);
    });
    scale_plane<kLanes>(b.in(0) + at, scale.of, shift.of, nullptr, nullptr, b.out(0) + at, g.planes.pixels);
  });
}

template <int kLanes>
void backward(const Groups& g, const BoundOperands& b) {
  auto* const with_xhat = b.scratch<double>();
  double* const alone = with_xhat + g.sums();
  double* const means = alone + g.sums();  // means of gamma dy xhat over each group, then of gamma dy
  const float *gamma = b.in(1), *mean = b.in(3), *invstd = b.in(3) + g.all();
  for_each_plane(g.planes, [&](std::int64_t i) {
    const std::int64_t at = i * g.planes.elements();
    for (double* const sums : {with_xhat, alone}) std::fill_n(sums + i * kLanes, kLanes, 0.0);
    const auto m = lanes_of<kLanes>(g, i, [&](std::int64_t, std::int64_t group) { return mean[group]; });
    const auto s = lanes_of<kLanes>(g, i, [&](std::int64_t, std::int64_t group) { return invstd[group]; });
    sum_gradients<kLanes>(b.in(0) + at, b.in(2) + at, m.of, s.of, g.planes.pixels, with_xhat + i * kLanes,
                          alone + i * kLanes);
  });
  const auto by_gamma = [&](std::int64_t c) { return double(gamma[c]); };
  for (std::int64_t group = 0; group < g.all(); ++group) {
    means[group] = g.sum_of(group, with_xhat, by_gamma) * g.inverse_count();
    means[g.all() + group] = g.sum_of(group, alone, by_gamma) * g.inverse_count();
  }
  add_samples(g.planes, with_xhat, b.out(1));
  add_samples(g.planes, alone, b.out(2));
  // Computes dx = invstd (gamma dy - mean(gamma dy) - xhat mean(gamma dy xhat)) as dy * by + x *
  // scale + shift.
  for_each_plane(g.planes, [&](std::int64_t i) {
    const std::int64_t at = i * g.planes.elements();
    const auto by =
        lanes_of<kLanes>(g, i, [&](std::int64_t c, std::int64_t group) { return invstd[group] * gamma[c]; });
    const auto scale = lanes_of<kLanes>(g, i, [&](std::int64_t, std::int64_t group) {
      return static_cast<float>(-double(invstd[group]) * invstd[group] * means[group]);
    });
    const auto shift = lanes_of<kLanes>(g, i, [&](std::int64_t, std::int64_t group) {
      const double s = invstd[group];
      return static_cast<float>(s * s * mean[group] * means[group] - s * means[g.all() + group]);
    });
    scale_plane<kLanes>(b.in(0) + at, scale.of, shift.of, b.in(2) + at, by.of, b.out(0) + at,
                        g.planes.pixels);
  });
}

Groups groups_of(const char* operation, const GroupNormProblem& problem, const TensorDesc& x) {
  const Planes planes = planes_of(operation, x);
  return {planes, problem.groups, planes.channels / problem.groups};
}

}  // namespace

Kernel group_norm_forward(const GroupNormProblem& problem, KernelRequest& request) {
  require_group_norm_forward(problem, request);
  match_layout("group_norm_forward", request.outputs[0], request.inputs[0]);
  const Groups g = groups_of("group_norm_forward", problem, request.inputs[0]);
  return with_lanes(g.planes.lanes, [&](auto lanes) {
    return host_kernel(
        [=](const BoundOperands& b) { forward<decltype(lanes)::value>(g, problem.epsilon, b); }, {{0, 0}},
        static_cast<std::size_t>(g.sums()) * sizeof(double));
  });
}

Kernel group_norm_backward(const GroupNormProblem& problem, KernelRequest& request) {
  require_group_norm_backward(problem, request);
  for (TensorDesc* desc : {&request.inputs[2], &request.outputs[0]})
    match_layout("group_norm_backward", *desc, request.inputs[0]);
  const Groups g = groups_of("group_norm_backward", problem, request.inputs[0]);
  return with_lanes(g.planes.lanes, [&](auto lanes) {
    return host_kernel([=](const BoundOperands& b) { backward<decltype(lanes)::value>(g, b); },
                       {{0, 0}, {2, 0}}, static_cast<std::size_t>(2 * (g.sums() + g.all())) * sizeof(double));
  });
}

}  // namespace convoy::kernels::cpu
