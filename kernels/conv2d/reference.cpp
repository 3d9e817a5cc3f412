// Convolves in plain loops.
#include <algorithm>
#include <cmath>

#include "kernels/conv2d/input_norm.h"
#include "kernels/conv2d/pieces.h"
#include "kernels/device/host_kernel.h"

namespace convoy::kernels::reference {
namespace {

struct Extents {
  std::int64_t n, c, h, w;  // the shape of x
  std::int64_t k, p, q;     // K, P and Q of the shape of y
  std::int64_t r, s;        // height and width of the filter
  std::int64_t c_group, k_group;
};

Extents extents_of(const char* operation, const Conv2dProblem& problem, const TensorDesc& x,
                   const TensorDesc& weights, const TensorDesc& y) {
  require_shape(operation, "y", y, conv2d_output_shape(problem, x.shape, weights.shape));
  return {x.shape[0],
          x.shape[1],
          x.shape[2],
          x.shape[3],
          y.shape[1],
          y.shape[2],
          y.shape[3],
          weights.shape[2],
          weights.shape[3],
          weights.shape[1],
          weights.shape[0] / problem.groups};
}

// Calls visit(x index, weights index, y index) for every product of the convolution. Forward and
// the two backward operations differ only in the array to which they add the product.
template <typename Visit>
void for_each_product(const Conv2dProblem& problem, const Extents& e, Visit visit) {
  for (std::int64_t n = 0; n < e.n; ++n)
    for (std::int64_t k = 0; k < e.k; ++k)
      for (std::int64_t p = 0; p < e.p; ++p)
        for (std::int64_t q = 0; q < e.q; ++q)
          for (std::int64_t c = 0; c < e.c_group; ++c)
            for (std::int64_t r = 0; r < e.r; ++r)
              for (std::int64_t s = 0; s < e.s; ++s) {
                const std::int64_t h = p * problem.stride[0] - problem.padding[0] + r * problem.dilation[0];
                const std::int64_t w = q * problem.stride[1] - problem.padding[1] + s * problem.dilation[1];
                if (h < 0 || h >= e.h || w < 0 || w >= e.w) continue;
                const std::int64_t x_channel = k / e.k_group * e.c_group + c;
                visit(((n * e.c + x_channel) * e.h + h) * e.w + w, ((k * e.c_group + c) * e.r + r) * e.s + s,
                      ((n * e.k + k) * e.p + p) * e.q + q);
              }
}

void store(const std::vector<double>& from, float* to) {
  std::transform(from.begin(), from.end(), to, [](double value) { return static_cast<float>(value); });
}

}  // namespace

// Returns the function by which forward and backward_weights read an element of x (input_affine).
static auto reader_of_x(const Conv2dProblem& problem, const Extents& e, const float* x, const float* affine) {
  return [=](std::int64_t i) {
    if (!problem.input_affine) return x[i];
    const std::int64_t channel = i / (e.h * e.w) % e.c;
    const float value = x[i] * affine[2 * channel] + affine[2 * channel + 1];
    return std::isnan(value) ? value
                             : std::clamp(value, problem.input_affine->least, problem.input_affine->most);
  };
}

Kernel conv2d_forward(const Conv2dProblem& problem, KernelRequest& request) {
  const int affine_at = problem.bias ? 3 : 2;
  require_counts("conv2d_forward", request, affine_at + problem.input_affine.has_value(),
                 writes_sums(problem) ? 2 : 1);
  require_row_major("conv2d_forward", request);
  if (writes_sums(problem)) {
    require_dtype("conv2d_forward", "sums", request.outputs[1], DType::f64);
    require_shape("conv2d_forward", "sums", request.outputs[1], {2, request.outputs[0].shape[1]});
  }
  const Extents e =
      extents_of("conv2d_forward", problem, request.inputs[0], request.inputs[1], request.outputs[0]);
  if (problem.input_affine) require_shape("conv2d_forward", "affine", request.inputs[affine_at], {2 * e.c});
  return host_kernel([=](const BoundOperands& operands) {
    const auto x_at =
        reader_of_x(problem, e, operands.in(0), problem.input_affine ? operands.in(affine_at) : nullptr);
    std::vector<double> y(e.n * e.k * e.p * e.q, 0.0);
    if (problem.bias)
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = operands.in(2)[i / (e.p * e.q) % e.k];
    for_each_product(problem, e, [&](std::int64_t ix, std::int64_t iw, std::int64_t iy) {
      y[iy] += double(x_at(ix)) * operands.in(1)[iw];
    });
    if (problem.relu)
      for (double& value : y) value = value < 0 ? 0 : value;
    store(y, operands.out(0));
    if (!writes_sums(problem)) return;
    auto* const sums = operands.out<double>(1);
    std::fill_n(sums, 2 * e.k, 0.0);
    for (std::int64_t i = 0; i < operands.control()->valid * e.k * e.p * e.q; ++i) {
      const double value = operands.out(0)[i];  // the stored value, which may be rounded
      sums[i / (e.p * e.q) % e.k] += value;
      sums[e.k + i / (e.p * e.q) % e.k] += value * value;
    }
  });
}

Kernel conv2d_backward_data(const Conv2dProblem& problem, KernelRequest& request) {
  const char* operation = "conv2d_backward_data";
  require_input_norm_counts(operation, problem, request);
  Kernel pass;
  if (problem.input_norm) pass = norm_pass(batch_norm_backward_reduce, *problem.input_norm, request);
  require_row_major(operation, request);
  const Extents e = extents_of(operation, problem, request.outputs[0], request.inputs[1], request.inputs[0]);
  if (problem.input_relu) require_shape(operation, "x", request.inputs[2], request.outputs[0].shape);
  const Kernel convolution = host_kernel([=](const BoundOperands& operands) {
    std::vector<double> dx(e.n * e.c * e.h * e.w, 0.0);
    for_each_product(problem, e, [&](std::int64_t ix, std::int64_t iw, std::int64_t iy) {
      dx[ix] += double(operands.in(0)[iy]) * operands.in(1)[iw];
    });
    for (std::size_t i = 0; problem.input_relu && i < dx.size(); ++i)
      if (!(operands.in(2)[i] > 0)) dx[i] = 0;
    store(dx, operands.out(0));
  });
  return problem.input_norm ? followed_by_norm_pass(convolution, pass) : convolution;
}

Kernel conv2d_backward_weights(const Conv2dProblem& problem, KernelRequest& request) {
  if (problem.piece > 0)
    return backward_weights_in_pieces(Backend::reference, conv2d_backward_weights, problem, request);
  require_counts("conv2d_backward_weights", request, problem.input_affine ? 3 : 2, problem.bias ? 2 : 1);
  require_row_major("conv2d_backward_weights", request);
  const Extents e = extents_of("conv2d_backward_weights", problem, request.inputs[0], request.outputs[0],
                               request.inputs[1]);
  return host_kernel([=](const BoundOperands& operands) {
    const float* dy = operands.in(1);
    const auto x_at =
        reader_of_x(problem, e, operands.in(0), problem.input_affine ? operands.in(2) : nullptr);
    std::vector<double> dweights(e.k * e.c_group * e.r * e.s, 0.0), dbias(e.k, 0.0);
    for_each_product(problem, e, [&](std::int64_t ix, std::int64_t iw, std::int64_t iy) {
      dweights[iw] += double(x_at(ix)) * dy[iy];
    });
    store(dweights, operands.out(0));
    if (!problem.bias) return;
    for (std::int64_t i = 0; i < e.n * e.k * e.p * e.q; ++i) dbias[i / (e.p * e.q) % e.k] += dy[i];
    store(dbias, operands.out(1));
  });
}

}  // namespace convoy::kernels::reference
