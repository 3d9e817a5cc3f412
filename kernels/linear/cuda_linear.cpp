// Computes a fully connected layer on the device, with one matrix product per pass. The weights
// expect rows in the order C, H, W. So images with more than one pixel and more than one channel
// are reordered to such rows first, which costs less than reordering the weights.
#include "kernels/device/cuda_kernel.h"
#include "kernels/gemm/common/bias_gradient.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/rungs.h"
#include "kernels/linear/flatten.h"
#include "kernels/linear/linear.h"

namespace convoy::kernels::cuda {
namespace {

struct Extents {
  std::int64_t n, in, out;
  std::int64_t pixels, channels;  // the numbers of pixels and channels of x
  DType type;
  gemm::Math math;

  bool needs_flatten() const { return pixels > 1 && channels > 1; }
  std::size_t x_bytes() const { return std::size_t(n * in) * bytes_of(type); }
};

Extents require_linear(const char* operation, const LinearProblem& problem, TensorDesc& x,
                       TensorDesc& weights, TensorDesc& y, TensorDesc* bias, bool gradient) {
  for (TensorDesc* desc : {&x, &weights, &y}) require_activation_layout(operation, *desc);
  const ImageExtents image = image_extents(x.shape);
  Extents e{image.n,    image.c * image.pixels(), y.shape[1], image.pixels(), image.c,
            DType::f32, gemm::Math::fp32};
  require_shape(operation, "weights", weights, {e.out, e.in});
  require_shape(operation, "y", y, {e.n, e.out});
  if (gradient) require_dtype(operation, "dweights", weights, DType::f32);
  e.type = gradient ? common_dtype(operation, {&x, &y}) : common_dtype(operation, {&x, &y, &weights});
  e.math = e.type == DType::bf16 ? gemm::Math::bf16 : problem.tf32 ? gemm::Math::tf32 : gemm::Math::fp32;
  if (bias != nullptr) {
    require_layout(operation, *bias, Layout::row_major);
    require_dtype(operation, "the bias", *bias, DType::f32);
    require_shape(operation, "the bias", *bias, {e.out});
  }
  return e;
}

gemm::Problem product_of(const Extents& e, DType output, std::int64_t m, std::int64_t n, std::int64_t k) {
  gemm::Problem product;
  product.math = e.math;
  product.output = output;
  product.m = m, product.n = n, product.k = k;
  return product;
}

// The workspace of a pass: the workspace of the matrix product, x or dx as rows (if they are
// reordered), and partial sums of the bias gradient.
struct Workspace {
  std::uint8_t *product, *rows, *sums;
  std::size_t bytes;
};
Workspace carve(const Extents& e, const gemm::Plan& plan, std::size_t sums, void* base) {
  gemm::Carver carver(base);
  auto* const product = carver.take<std::uint8_t>(plan.workspace_bytes);
  auto* const rows = carver.take<std::uint8_t>(e.needs_flatten() ? e.x_bytes() : 0);
  auto* const for_sums = carver.take<std::uint8_t>(sums);
  return {product, rows, for_sums, carver.used()};
}

void flatten(const Extents& e, const void* images, void* rows, Stream stream, MemberLayout members) {
  linear::transpose_planes(images, rows, e.n, e.pixels, e.channels, bytes_of(e.type), stream, members);
}
void unflatten(const Extents& e, const void* rows, void* images, Stream stream, MemberLayout members) {
  linear::transpose_planes(rows, images, e.n, e.channels, e.pixels, bytes_of(e.type), stream, members);
}

}  // namespace

Kernel linear_forward(const LinearProblem& problem, KernelRequest& request) {
  const char* operation = "linear_forward";
  require_counts(operation, request, problem.bias ? 3 : 2, 1);
  const Extents e = require_linear(operation, problem, request.inputs[0], request.inputs[1],
                                   request.outputs[0], problem.bias ? &request.inputs[2] : nullptr, false);
  gemm::Problem product = product_of(e, e.type, e.n, e.out, e.in);
  product.transpose_b = true;
  product.bias = problem.bias;
  const gemm::Plan plan = gemm::chosen(product);
  Kernel kernel;
  kernel.takes_members = gemm::takes_members(plan);
  kernel.workspace_bytes = carve(e, plan, 0, nullptr).bytes;
  kernel.bind = [=](const Operands& operands) -> Launch {
    const Workspace workspace = carve(e, plan, 0, operands.workspace);
    const void* x = operands.inputs[0];
    gemm::Buffers buffers;
    buffers.a = e.needs_flatten() ? workspace.rows : x;
    buffers.b = operands.inputs[1];
    buffers.c = operands.outputs[0];
    if (product.bias) buffers.bias = static_cast<const float*>(operands.inputs[2]);
    buffers.workspace = workspace.product;
    buffers.members = operands.members;
    return [=, launch = gemm::bind(product, plan, buffers)](Stream stream) {
      if (e.needs_flatten()) flatten(e, x, workspace.rows, stream, buffers.members);
      launch(stream);
    };
  };
  return kernel;
}

Kernel linear_backward_data(const LinearProblem& problem, KernelRequest& request) {
  const char* operation = "linear_backward_data";
  require_counts(operation, request, 2, 1);
  const Extents e = require_linear(operation, problem, request.outputs[0], request.inputs[1],
                                   request.inputs[0], nullptr, false);
  const gemm::Problem product = product_of(e, e.type, e.n, e.in, e.out);
  const gemm::Plan plan = gemm::chosen(product);
  Kernel kernel;
  kernel.takes_members = gemm::takes_members(plan);
  kernel.workspace_bytes = carve(e, plan, 0, nullptr).bytes;
  kernel.bind = [=](const Operands& operands) -> Launch {
    const Workspace workspace = carve(e, plan, 0, operands.workspace);
    void* dx = operands.outputs[0];
    gemm::Buffers buffers;
    buffers.a = operands.inputs[0];
    buffers.b = operands.inputs[1];
    buffers.c = e.needs_flatten() ? workspace.rows : dx;
    buffers.workspace = workspace.product;
    buffers.members = operands.members;
    return [=, launch = gemm::bind(product, plan, buffers)](Stream stream) {
      launch(stream);
      if (e.needs_flatten()) unflatten(e, workspace.rows, dx, stream, buffers.members);
    };
  };
  return kernel;
}

Kernel linear_backward_weights(const LinearProblem& problem, KernelRequest& request) {
  const char* operation = "linear_backward_weights";
  require_counts(operation, request, 2, problem.bias ? 2 : 1);
  const Extents e = require_linear(operation, problem, request.inputs[0], request.outputs[0],
                                   request.inputs[1], problem.bias ? &request.outputs[1] : nullptr, true);
  gemm::Problem product = product_of(e, DType::f32, e.out, e.in, e.n);
  product.transpose_a = true;
  const gemm::Plan plan = gemm::chosen(product);
  const std::size_t sums = problem.bias ? gemm::bias_gradient_workspace(e.type, e.n, e.out) : 0;
  Kernel kernel;
  kernel.takes_members = gemm::takes_members(plan);
  kernel.workspace_bytes = carve(e, plan, sums, nullptr).bytes;
  kernel.bind = [=](const Operands& operands) -> Launch {
    const Workspace workspace = carve(e, plan, sums, operands.workspace);
    const void *x = operands.inputs[0], *dy = operands.inputs[1];
    auto* const dbias = sums > 0 ? static_cast<float*>(operands.outputs[1]) : nullptr;
    gemm::Buffers buffers;
    buffers.a = dy;
    buffers.b = e.needs_flatten() ? workspace.rows : x;
    buffers.c = operands.outputs[0];
    buffers.workspace = workspace.product;
    buffers.members = operands.members;
    return [=, launch = gemm::bind(product, plan, buffers)](Stream stream) {
      if (e.needs_flatten()) flatten(e, x, workspace.rows, stream, buffers.members);
      launch(stream);
      if (dbias != nullptr)
        gemm::bias_gradient(e.type, dy, e.n, e.out, dbias, workspace.sums, stream, buffers.members);
    };
  };
  return kernel;
}

}  // namespace convoy::kernels::cuda
