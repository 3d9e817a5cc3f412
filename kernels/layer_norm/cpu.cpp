// Layer normalisation of row_major and blocked tensors. A thread computes all channels of a run of
// neighbouring pixels. Within one block of channels, the elements of a run are neighbours in
// memory, so loops over them are vectorised.
#include <cmath>

#include "kernels/device/planes.h"
#include "kernels/layer_norm/layer_norm.h"

namespace convoy::kernels::cpu {
namespace {

constexpr int kRun = 512;  // the most elements of a run in one block of channels

struct Run {
  Planes planes;
  std::int64_t first;  // index of the element of the run's first pixel and channel
  std::int64_t pixels;
  std::int64_t row;  // number of the run's first pixel, counted over all samples
};

// Calls visit(element, position, channel) for the run's elements in one block of channels, except
// padding. `element` is the index in the tensor. `position` counts from the run's first element in
// this block.
template <int kLanes, typename Visit>
[[gnu::always_inline]] inline void for_each_element(const Run& run, std::int64_t block, const Visit& visit) {
  const std::int64_t begin = run.first + block * run.planes.elements();
  const std::int64_t used = std::min<std::int64_t>(kLanes, run.planes.channels - block * kLanes);
  if (used == kLanes) {
#pragma omp simd
    for (std::int64_t i = 0; i < run.pixels * kLanes; ++i)
      visit(begin + i, i, kLanes == 1 ? block : block * kLanes + i % kLanes);
  } else {
    for (std::int64_t pixel = 0; pixel < run.pixels; ++pixel)
      for (std::int64_t lane = 0; lane < used; ++lane)
        visit(begin + pixel * kLanes + lane, pixel * kLanes + lane, block * kLanes + lane);
  }
}

// For each pixel, adds up its lanes and stores the sum, times `factor`, in all of its lanes.
template <int kLanes>
[[gnu::always_inline]] inline void join_lanes(double (&sums)[kRun], double factor, float* to) {
  for (int pixel = 0; pixel < kRun / kLanes; ++pixel) {
    double sum = 0;
    for (int lane = 0; lane < kLanes; ++lane) sum += sums[pixel * kLanes + lane];
    for (int lane = 0; lane < kLanes; ++lane) to[pixel * kLanes + lane] = static_cast<float>(sum * factor);
  }
}

template <int kLanes>
CONVOY_VECTORISED void forward_run(const Run& run, float epsilon, const float* x, const float* gamma,
                                   const float* beta, float* y, float* moments) {
  const double inverse = 1.0 / static_cast<double>(run.planes.channels);
  double sums[kRun] = {}, squares[kRun] = {};
  float mean[kRun], invstd[kRun];
  for (std::int64_t block = 0; block < run.planes.blocks; ++block)
    for_each_element<kLanes>(
        run, block, [&](std::int64_t at, std::int64_t i, std::int64_t) __attribute__((always_inline)) {
          sums[i] += x[at];
        });
  join_lanes<kLanes>(sums, inverse, mean);
  for (std::int64_t block = 0; block < run.planes.blocks; ++block)
    for_each_element<kLanes>(
        run, block, [&](std::int64_t at, std::int64_t i, std::int64_t) __attribute__((always_inline)) {
          const float centred = x[at] - mean[i];
          squares[i] += centred * centred;
        });
  join_lanes<kLanes>(squares, inverse, invstd);
  for (float& value : invstd) value = 1 / std::sqrt(value + epsilon);
  for (std::int64_t block = 0; block < run.planes.blocks; ++block)
    for_each_element<kLanes>(
        run, block, [&](std::int64_t at, std::int64_t i, std::int64_t c) __attribute__((always_inline)) {
          y[at] = (x[at] - mean[i]) * invstd[i] * gamma[c] + beta[c];
        });
  const std::int64_t rows = run.planes.samples * run.planes.pixels;
  for (std::int64_t pixel = 0; pixel < run.pixels; ++pixel) {
    moments[run.row + pixel] = mean[pixel * kLanes];
    moments[rows + run.row + pixel] = invstd[pixel * kLanes];
  }
}

// Writes dx for a run, and adds the run's contributions to dgamma and dbeta to `sums`, [2, blocks *
// lanes].
template <int kLanes>
CONVOY_VECTORISED void backward_run(const Run& run, const float* x, const float* gamma, const float* dy,
                                    const float* moments, float* dx, double* sums) {
  const std::int64_t rows = run.planes.samples * run.planes.pixels, width = run.planes.padded_channels();
  float mean[kRun] = {}, invstd[kRun] = {}, g_mean[kRun], gx_mean[kRun];
  for (std::int64_t i = 0; i < run.pixels * kLanes; ++i) {
    mean[i] = moments[run.row + i / kLanes];
    invstd[i] = moments[rows + run.row + i / kLanes];
  }
  double g[kRun] = {}, gx[kRun] = {};
  for (std::int64_t block = 0; block < run.planes.blocks; ++block) {
    float by_element[2][kRun] = {};
    for_each_element<kLanes>(
        run, block, [&](std::int64_t at, std::int64_t i, std::int64_t c) __attribute__((always_inline)) {
          const float xhat = (x[at] - mean[i]) * invstd[i];
          by_element[0][i] = dy[at] * xhat;
          by_element[1][i] = dy[at];
          g[i] += dy[at] * gamma[c];
          gx[i] += dy[at] * gamma[c] * xhat;
        });
    for (int which = 0; which < 2; ++which)
      sum_plane<kLanes>(
          kRun / kLanes,
          [&](std::int64_t i, int) __attribute__((always_inline)) { return by_element[which][i]; },
          sums + which * width + block * kLanes);
  }
  join_lanes<kLanes>(g, 1.0 / static_cast<double>(run.planes.channels), g_mean);
  join_lanes<kLanes>(gx, 1.0 / static_cast<double>(run.planes.channels), gx_mean);
  for (std::int64_t block = 0; block < run.planes.blocks; ++block)
    for_each_element<kLanes>(
        run, block, [&](std::int64_t at, std::int64_t i, std::int64_t c) __attribute__((always_inline)) {
          const float xhat = (x[at] - mean[i]) * invstd[i];
          dx[at] = invstd[i] * (dy[at] * gamma[c] - g_mean[i] - xhat * gx_mean[i]);
        });
}

// The number of runs that one task computes. Tasks run in parallel.
constexpr std::int64_t kRunsAPiece = 8;
std::int64_t pieces_of(const Planes& planes) {
  const std::int64_t piece = kRunsAPiece * kRun / planes.lanes;
  return (planes.pixels + piece - 1) / piece;
}
template <typename Body>
void for_each_run(const Planes& planes, std::int64_t piece, const Body& body) {
  const std::int64_t pixels = kRun / planes.lanes, pieces = pieces_of(planes), n = piece / pieces;
  const std::int64_t begin = piece % pieces * kRunsAPiece * pixels;
  for (std::int64_t p = begin; p < std::min(planes.pixels, begin + kRunsAPiece * pixels); p += pixels)
    body(Run{planes, n * planes.blocks * planes.elements() + p * planes.lanes,
             std::min(pixels, planes.pixels - p), n * planes.pixels + p});
}

}  // namespace

Kernel layer_norm_forward(const LayerNormProblem& problem, KernelRequest& request) {
  require_layer_norm_forward(request);
  const TensorDesc& x = request.inputs[0];
  match_layout("layer_norm_forward", request.outputs[0], x);
  const Planes planes = planes_of("layer_norm_forward", x);
  return with_lanes(planes.lanes, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    return host_kernel(
        [=, y = request.outputs[0]](const BoundOperands& b) {
          parallel_for(planes.samples * pieces_of(planes), [&](std::int64_t piece) {
            for_each_run(planes, piece, [&](const Run& run) {
              forward_run<kLanes>(run, problem.epsilon, b.in(0), b.in(1), b.in(2), b.out(0), b.out(1));
            });
          });
          clear_channel_padding(y, b.out(0));
        },
        {{0, 0}});
  });
}

Kernel layer_norm_backward(const LayerNormProblem&, KernelRequest& request) {
  require_layer_norm_backward(request);
  const TensorDesc& x = request.inputs[0];
  match_layout("layer_norm_backward", request.inputs[2], x);
  match_layout("layer_norm_backward", request.outputs[0], x);
  const Planes planes = planes_of("layer_norm_backward", x);
  const std::int64_t pieces = planes.samples * pieces_of(planes), width = planes.padded_channels();
  return with_lanes(planes.lanes, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    return host_kernel(
        [=, dx = request.outputs[0]](const BoundOperands& b) {
          auto* const sums = b.scratch<double>();
          parallel_for(pieces, [&](std::int64_t piece) {
            double* const own = sums + piece * 2 * width;
            std::fill_n(own, 2 * width, 0.0);
            for_each_run(planes, piece, [&](const Run& run) {
              backward_run<kLanes>(run, b.in(0), b.in(1), b.in(2), b.in(3), b.out(0), own);
            });
          });
          clear_channel_padding(dx, b.out(0));
          for (int which = 0; which < 2; ++which)
            for (std::int64_t c = 0; c < planes.channels; ++c) {
              double sum = 0;
              for (std::int64_t piece = 0; piece < pieces; ++piece)
                sum += sums[(2 * piece + which) * width + c];
              b.out(1 + which)[c] = static_cast<float>(sum);
            }
        },
        {{0, 0}, {2, 0}}, static_cast<std::size_t>(pieces * 2 * width) * sizeof(double));
  });
}

}  // namespace convoy::kernels::cpu
