#include "kernels/conv2d/cpu_depthwise.h"

#include "kernels/device/planes.h"

namespace convoy::kernels::cpu {
namespace {

struct Geometry {
  Planes x, dy;
  std::int64_t h, w, p, q;
  int filter, stride[2], padding[2];

  int taps() const { return filter * filter; }
};

template <int kLanes>
struct VectorOf {
  // A vector of kLanes floats, without alignment.
  using Type [[gnu::vector_size(kLanes * 4), gnu::aligned(4), gnu::may_alias]] = float;
};

// Multiplies a row of dy by the row of x under one row of the filter. Adds the products of each tap
// to sums[kFilter][kLanes].
template <int kLanes, int kFilter>
CONVOY_VECTORISED void add_line(const Geometry& g, const float* x, const float* dy, double* sums) {
  using Vector = typename VectorOf<kLanes>::Type;
  // `edge` has the sums over the positions where the filter reaches beyond the image, with a test
  // for each tap. `inner` has the sums over the other positions; its loop is unrolled, so that it
  // stays in registers.
  Vector inner[kFilter] = {}, edge[kFilter] = {};
  for (std::int64_t q = 0; q < g.q; ++q) {
    const Vector gradient = *reinterpret_cast<const Vector*>(dy + q * kLanes);
    const std::int64_t left = q * g.stride[1] - g.padding[1];
    if (left >= 0 && left + kFilter <= g.w) {
#pragma GCC unroll 8
      for (int s = 0; s < kFilter; ++s)
        inner[s] += gradient * *reinterpret_cast<const Vector*>(x + (left + s) * kLanes);
    } else {
      const auto begin = std::max<std::int64_t>(0, -left), end = std::min<std::int64_t>(kFilter, g.w - left);
      for (std::int64_t s = begin; s < end; ++s)
        edge[s] += gradient * *reinterpret_cast<const Vector*>(x + (left + s) * kLanes);
    }
  }
#pragma GCC unroll 8
  for (int s = 0; s < kFilter; ++s)
    for (int lane = 0; lane < kLanes; ++lane) sums[s * kLanes + lane] += inner[s][lane] + edge[s][lane];
}

template <int kLanes>
CONVOY_VECTORISED void add_bias(const float* dy, std::int64_t pixels, double* sums) {
  sum_plane<kLanes>(
      pixels, [=](std::int64_t i, int) __attribute__((always_inline)) { return dy[i]; }, sums);
}

// Adds one sample's products for a block of kLanes channels to sums[taps][kLanes].
template <int kLanes>
void add_plane(const Geometry& g, const float* x, const float* dy, double* sums) {
  const auto add = g.filter == 5 ? add_line<kLanes, 5> : add_line<kLanes, 7>;
  for (std::int64_t p = 0; p < g.p; ++p)
    for (int r = 0; r < g.filter; ++r) {
      const std::int64_t h = p * g.stride[0] - g.padding[0] + r;
      if (h >= 0 && h < g.h)
        add(g, x + h * g.w * kLanes, dy + p * g.q * kLanes, sums + std::int64_t{r} * g.filter * kLanes);
    }
}

// The batch is summed in this many pieces for every number of threads, so that the bits of the sums
// do not depend on that number.
constexpr std::int64_t kPieces = 8;

template <int kLanes>
Kernel make(const Geometry& g, bool bias, const TensorDesc& dweights) {
  // The workspace has the sums of the pieces, [kPieces][blocks of channels][rows][kLanes], and then
  // dweights in row_major. The rows are the taps and, with `bias`, the bias.
  const std::int64_t rows = g.taps() + bias, all = kPieces * g.x.blocks * rows * kLanes;
  const auto body = [=](const BoundOperands& b) {
    auto* const sums = b.scratch<double>();
    std::fill_n(sums, all, 0.0);
    parallel_for(kPieces * g.x.blocks, [&](std::int64_t task) {
      const std::int64_t piece = task / g.x.blocks, block = task % g.x.blocks;
      double* const own = sums + task * rows * kLanes;
      for (std::int64_t n = g.x.samples * piece / kPieces; n < g.x.samples * (piece + 1) / kPieces; ++n) {
        const std::int64_t plane = n * g.x.blocks + block;
        const float* const dy = b.in(1) + plane * g.dy.elements();
        add_plane<kLanes>(g, b.in(0) + plane * g.x.elements(), dy, own);
        if (bias) add_bias<kLanes>(dy, g.dy.pixels, own + std::int64_t{g.taps()} * kLanes);
      }
    });
    auto* const filters = reinterpret_cast<float*>(sums + all);
    for (std::int64_t c = 0; c < g.x.channels; ++c)
      for (std::int64_t row = 0; row < rows; ++row) {
        double sum = 0;
        for (std::int64_t piece = 0; piece < kPieces; ++piece)
          sum += sums[((piece * g.x.blocks + c / kLanes) * rows + row) * kLanes + c % kLanes];
        (row < g.taps() ? filters[c * g.taps() + row] : b.out(1)[c]) = static_cast<float>(sum);
      }
    from_row_major(dweights, filters, b.outputs[0]);
  };
  return host_kernel(body, {},
                     static_cast<std::size_t>(all) * sizeof(double) +
                         static_cast<std::size_t>(g.x.channels * g.taps()) * sizeof(float));
}

}  // namespace

std::optional<Kernel> depthwise_backward_weights(const Conv2dProblem& problem, KernelRequest& request) {
  TensorDesc &x = request.inputs[0], &dy = request.inputs[1], &dweights = request.outputs[0];
  const auto filter = static_cast<int>(dweights.shape[2]);
  const bool blocked = x.layout == Layout::blocked16 || x.layout == Layout::blocked8;
  if (problem.groups != x.shape[1] || dy.shape[1] != x.shape[1] || dweights.shape[3] != filter ||
      (filter != 5 && filter != 7) || problem.dilation != std::array{1, 1} || !blocked)
    return std::nullopt;
  if (dy.layout != Layout::any && dy.layout != x.layout) return std::nullopt;
  const char* operation = "conv2d_backward_weights";
  match_layout(operation, dy, x);
  if (dweights.layout == Layout::any) require_layout(operation, dweights, Layout::row_major);
  const Geometry g{planes_of(operation, x),
                   planes_of(operation, dy),
                   x.shape[2],
                   x.shape[3],
                   dy.shape[2],
                   dy.shape[3],
                   filter,
                   {problem.stride[0], problem.stride[1]},
                   {problem.padding[0], problem.padding[1]}};
  return g.x.lanes == 16 ? make<16>(g, problem.bias, dweights) : make<8>(g, problem.bias, dweights);
}

}  // namespace convoy::kernels::cpu
