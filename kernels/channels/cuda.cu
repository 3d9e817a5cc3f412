// Copies of channels on the device: whole packs where the map keeps them together, else elements
// that are gathered into packs.
#include "kernels/channels/channels.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/divider.h"

namespace convoy::kernels::cuda {
namespace {

// ChannelMap in 32 bits.
struct Map {
  int in, first, last, shift, group;  // group: channels of one
  Divider groups;

  __device__ int source(int c) const {
    if (c < first || c >= last) return -1;
    if (groups.divisor == 1) return c + shift;
    const auto at = static_cast<int>(groups(static_cast<std::uint32_t>(c)));
    return (c - at * static_cast<int>(groups.divisor)) * group + at;
  }
};

// A thread writes V neighbouring channels of a pixel.
template <typename T, int V, bool together>
__global__ void copy_channels(const T* x, T* y, const __grid_constant__ Map map, Divider packs,
                              std::int64_t items, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, y);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < items; i += stride) {
    const std::uint32_t row = packs(static_cast<std::uint32_t>(i));
    const int channel = static_cast<int>(static_cast<std::uint32_t>(i) - row * packs.divisor) * V;
    const T* const from = x + std::int64_t{row} * map.in;
    Pack<T, V> pack = zero_pack<T, V>();
    if constexpr (together) {
      const int source = map.source(channel);
      if (source >= 0) pack = load_pack<V>(from + source);
    } else {
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const int source = map.source(channel + k);
        if (source >= 0) pack.value[k] = from[source];
      }
    }
    store_pack(y + i * V, pack);
  }
}

// Calls visit(Packing) with the widest packs that divide the channels: ShuffleNet has 116.
template <typename Visit>
void with_widest(DType type, std::int64_t channels, Visit visit) {
  const bool half = type == DType::bf16;
  if (half && channels % 8 == 0) return visit(Packing<bf16, 8>{});
  if (channels % 4 == 0) return half ? visit(Packing<bf16, 4>{}) : visit(Packing<float, 4>{});
  if (channels % 2 == 0) return half ? visit(Packing<bf16, 2>{}) : visit(Packing<float, 2>{});
  half ? visit(Packing<bf16, 1>{}) : visit(Packing<float, 1>{});
}

Kernel copy(const char* operation, const ChannelMap& map, KernelRequest& request) {
  TensorDesc &x = request.inputs[0], &y = request.outputs[0];
  require_activation_layout(operation, x);
  match_layout(operation, y, x);
  const DType type = common_dtype(operation, {&x, &y});
  require_below_2g(operation, y.shape.elements());
  const Map on_device{
      static_cast<int>(map.in),    static_cast<int>(map.first),           static_cast<int>(map.last),
      static_cast<int>(map.shift), static_cast<int>(map.in / map.groups), Divider(map.groups)};
  const auto body = [=, elements = y.shape.elements()](const BoundOperands& b, Stream stream) {
    with_widest(type, map.out, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      constexpr int V = P::kWidth;
      const std::int64_t items = elements / V;
      const auto whole = [](std::int64_t channels) { return channels % V == 0; };
      const bool together =
          map.groups == 1 && whole(map.in) && whole(map.first) && whole(map.last) && whole(map.shift);
      launch(together ? copy_channels<T, V, true> : copy_channels<T, V, false>, grid_for(items), kThreads,
             stream, b.members, b.in<T>(0), b.out<T>(0), on_device, Divider(map.out / V), items);
    });
  };
  return device_kernel(body);
}

}  // namespace

Kernel slice_forward(const SliceProblem& problem, KernelRequest& request) {
  return copy("slice_forward", map_of_slice("slice_forward", false, problem, request), request);
}
Kernel slice_backward(const SliceProblem& problem, KernelRequest& request) {
  return copy("slice_backward", map_of_slice("slice_backward", true, problem, request), request);
}
Kernel channel_shuffle(const ShuffleProblem& problem, KernelRequest& request) {
  return copy("channel_shuffle", map_of_shuffle(problem, request), request);
}

}  // namespace convoy::kernels::cuda
