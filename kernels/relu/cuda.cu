// Applies the ReLU on the device, in one pass with accesses of 16 bytes.
#include "kernels/device/cuda_launch.cuh"
#include "kernels/relu/relu.h"

namespace convoy::kernels::cuda {
namespace {

// Computes mask > 0 ? from : 0 (backward) or, if mask is null, max(from, 0).
template <typename T, int V>
__global__ void relu(const T* mask, const T* from, T* to, std::int64_t packs, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, mask, from, to);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packs; i += stride) {
    float value[V];
    unpack(load_pack<V>(from + i * V), value);
    if (mask != nullptr) {
      float keep[V];
      unpack(load_pack<V>(mask + i * V), keep);
      for (int k = 0; k < V; ++k) value[k] = keep[k] > 0 ? value[k] : 0.0f;
    } else {
      for (int k = 0; k < V; ++k) value[k] = rectified(value[k]);
    }
    store_pack(to + i * V, pack_of<T>(value));
  }
}

Kernel elementwise(const char* operation, KernelRequest& request, bool backward) {
  const int inputs = backward ? 2 : 1;
  require_counts(operation, request, inputs, 1);
  TensorDesc& first = request.inputs[0];
  if (first.layout == Layout::any) require_activation_layout(operation, first);
  if (backward) match_layout(operation, request.inputs[1], first);
  match_layout(operation, request.outputs[0], first);
  for (TensorDesc& input : request.inputs)
    require_shape(operation, "an input", input, request.outputs[0].shape);
  const DType type = common_dtype(operation, {&first, &request.inputs.back(), &request.outputs[0]});
  const std::int64_t elements = first.shape.elements();
  const auto body = [=](const BoundOperands& operands, Stream stream) {
    with_packing(type, {elements}, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      const std::int64_t packs = elements / P::kWidth;
      launch(relu<T, P::kWidth>, grid_for(packs), kThreads, stream, operands.members,
             backward ? operands.in<T>(0) : nullptr, operands.in<T>(inputs - 1), operands.out<T>(0), packs);
    });
  };
  return device_kernel(body, {{inputs - 1, 0}});
}

}  // namespace

Kernel relu_forward(const ReluProblem&, KernelRequest& request) {
  return elementwise("relu_forward", request, false);
}
Kernel relu_backward(const ReluProblem&, KernelRequest& request) {
  return elementwise("relu_backward", request, true);
}

}  // namespace convoy::kernels::cuda
