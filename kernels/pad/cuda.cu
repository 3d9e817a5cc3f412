// Pads images on the device. A thread computes one pack (16 bytes) of the channels of an output
// pixel.
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/divider.h"
#include "kernels/pad/pad.h"

namespace convoy::kernels::cuda {
namespace {

struct Geometry {
  int h, w;  // the height and width of the input
  int top, left;
  float value;
  Divider packs, columns, rows;  // divide by the packs in a pixel, and by the output's width and height
};

template <typename T, int V>
__global__ void pad(const T* x, T* y, const __grid_constant__ Geometry g, std::int64_t items,
                    std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, y);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < items; i += stride) {
    const std::uint32_t pixel = g.packs(static_cast<std::uint32_t>(i)), line = g.columns(pixel),
                        sample = g.rows(line);
    const std::uint32_t pack = static_cast<std::uint32_t>(i) - pixel * g.packs.divisor;
    const int column = static_cast<int>(pixel - line * g.columns.divisor) - g.left;
    const int row = static_cast<int>(line - sample * g.rows.divisor) - g.top;
    float fill[V];
#pragma unroll
    for (int k = 0; k < V; ++k) fill[k] = g.value;
    Pack<T, V> value = pack_of<T>(fill);
    if (static_cast<unsigned>(row) < static_cast<unsigned>(g.h) &&
        static_cast<unsigned>(column) < static_cast<unsigned>(g.w))
      value = load_pack<V>(
          x + (((std::int64_t{sample} * g.h + row) * g.w + column) * g.packs.divisor + pack) * V);
    store_pack(y + i * V, value);
  }
}

Kernel make(const char* operation, const PadProblem& problem, KernelRequest& request) {
  require_counts(operation, request, 1, 1);
  TensorDesc &x = request.inputs[0], &y = request.outputs[0];
  for (TensorDesc* desc : {&x, &y}) require_activation_layout(operation, *desc);
  require_shape(operation, "the output", y, pad_output_shape(problem, x.shape));
  const DType type = common_dtype(operation, {&x, &y});
  require_below_2g(operation, y.shape.elements());
  const ImageExtents from = image_extents(x.shape), to = image_extents(y.shape);
  return device_kernel([=](const BoundOperands& b, Stream stream) {
    with_packing(type, {to.c}, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      const Geometry g{static_cast<int>(from.h),
                       static_cast<int>(from.w),
                       problem.top,
                       problem.left,
                       problem.value,
                       Divider(to.c / P::kWidth),
                       Divider(to.w),
                       Divider(to.h)};
      const std::int64_t items = to.n * to.c * to.pixels() / P::kWidth;
      launch(pad<T, P::kWidth>, grid_for(items), kThreads, stream, b.members, b.in<T>(0), b.out<T>(0), g,
             items);
    });
  });
}

}  // namespace

Kernel pad_forward(const PadProblem& problem, KernelRequest& request) {
  return make("pad_forward", problem, request);
}
Kernel pad_backward(const PadProblem& problem, KernelRequest& request) {
  return make("pad_backward", turned(problem), request);
}

}  // namespace convoy::kernels::cuda
