// Sum of tensors on the device: one pass for up to eight of them.
#include "kernels/add/add.h"
#include "kernels/device/cuda_launch.cuh"

namespace convoy::kernels::cuda {
namespace {

constexpr int kMost = 8;  // tensors that one pass adds

struct Inputs {
  const void* of[kMost];
  int count;
};

template <typename T, int V>
__global__ void add(const __grid_constant__ Inputs inputs, T* y, std::int64_t packs) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packs; i += stride) {
    // The first two together: an addition of two tensors has both loads in flight.
    const Pack<T, V> first = load_pack<V>(static_cast<const T*>(inputs.of[0]) + i * V);
    const Pack<T, V> second = load_pack<V>(static_cast<const T*>(inputs.of[1]) + i * V);
    float sum[V], value[V];
    unpack(first, sum);
    unpack(second, value);
    for (int k = 0; k < V; ++k) sum[k] += value[k];
    for (int input = 2; input < inputs.count; ++input) {
      unpack(load_pack<V>(static_cast<const T*>(inputs.of[input]) + i * V), value);
      for (int k = 0; k < V; ++k) sum[k] += value[k];
    }
    store_pack(y + i * V, pack_of<T>(sum));
  }
}

}  // namespace

Kernel add_forward(const AddProblem&, KernelRequest& request) {
  const char* operation = "add_forward";
  require_counts(operation, request, std::max<std::size_t>(2, request.inputs.size()), 1);
  if (request.inputs[0].layout == Layout::any) settle_activation(operation, request.inputs[0]);
  const TensorDesc& first = request.inputs[0];
  std::vector<const TensorDesc*> all{&first, &request.outputs[0]};
  for (TensorDesc& input : request.inputs) {
    settle_like(operation, input, first);
    require_shape(operation, "an input", input, request.outputs[0].shape);
    all.push_back(&input);
  }
  settle_like(operation, request.outputs[0], first);
  const DType type = common_dtype(operation, all);
  const std::int64_t elements = first.shape.elements();
  const auto body = [=](const BoundOperands& operands, Stream stream) {
    with_packing(type, {elements}, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      const std::int64_t packs = elements / P::kWidth;
      // Beyond eight, the sum so far is the first of the next eight.
      for (std::size_t next = 0; next < operands.inputs.size();) {
        Inputs inputs{};
        if (next > 0) inputs.of[inputs.count++] = operands.outputs[0];
        while (inputs.count < kMost && next < operands.inputs.size())
          inputs.of[inputs.count++] = operands.inputs[next++];
        launch(add<T, P::kWidth>, grid_for(packs), kThreads, stream, inputs, operands.out<T>(0), packs);
      }
    });
  };
  return device_kernel(body, {{0, 0}});
}

}  // namespace convoy::kernels::cuda
