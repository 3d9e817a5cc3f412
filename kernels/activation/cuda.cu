// Applies activations on the device, in one pass with accesses of 16 bytes.
#include "kernels/activation/activation.h"
#include "kernels/activation/formulas.h"
#include "kernels/device/cuda_launch.cuh"

namespace convoy::kernels::cuda {
namespace {

// Computes to = f(from) or, in backward, to = dy f'(from).
template <ActivationKind kind, bool backward, typename T, int V>
__global__ void activate(const ActivationProblem problem, const T* from, const T* dy, T* to,
                         std::int64_t packs, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, from, dy, to);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packs; i += stride) {
    float value[V];
    unpack(load_pack<V>(from + i * V), value);
    if constexpr (backward) {
      float gradient[V];
      unpack(load_pack<V>(dy + i * V), gradient);
#pragma unroll
      for (int k = 0; k < V; ++k) value[k] = gradient[k] * activation::derivative_of<kind>(problem, value[k]);
    } else {
#pragma unroll
      for (int k = 0; k < V; ++k) value[k] = activation::value_of<kind>(problem, value[k]);
    }
    store_pack(to + i * V, pack_of<T>(value));
  }
}

template <bool backward>
Kernel elementwise(const char* operation, const ActivationProblem& problem, KernelRequest& request) {
  require_activation(operation, problem);
  require_counts(operation, request, backward ? 2 : 1, 1);
  TensorDesc& first = request.inputs[0];
  if (first.layout == Layout::any) require_activation_layout(operation, first);
  for (TensorDesc& input : request.inputs) {
    match_layout(operation, input, first);
    require_shape(operation, "an input", input, request.outputs[0].shape);
  }
  match_layout(operation, request.outputs[0], first);
  const DType type = common_dtype(operation, {&first, &request.inputs.back(), &request.outputs[0]});
  const std::int64_t elements = first.shape.elements();
  const auto body = [=](const BoundOperands& operands, Stream stream) {
    activation::with_kind(problem.kind, [&](auto kind) {
      with_packing(type, {elements}, [&](auto packing) {
        using P = decltype(packing);
        using T = typename P::Type;
        const std::int64_t packs = elements / P::kWidth;
        launch(activate<decltype(kind)::value, backward, T, P::kWidth>, grid_for(packs), kThreads, stream,
               operands.members, problem, operands.in<T>(0), backward ? operands.in<T>(1) : nullptr,
               operands.out<T>(0), packs);
      });
    });
  };
  return device_kernel(body, backward ? std::vector<std::pair<int, int>>{{0, 0}, {1, 0}}
                                      : std::vector<std::pair<int, int>>{{0, 0}});
}

}  // namespace

Kernel activation_forward(const ActivationProblem& problem, KernelRequest& request) {
  return elementwise<false>("activation_forward", problem, request);
}
Kernel activation_backward(const ActivationProblem& problem, KernelRequest& request) {
  return elementwise<true>("activation_backward", problem, request);
}

}  // namespace convoy::kernels::cuda
