// Copies channels on the device. A thread writes 16 bytes. If channels are neighbours in the input
// and in the output, one read (a word) loads several of them.
#include <numeric>

#include "kernels/channels/channels.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/divider.h"

namespace convoy::kernels::cuda {
namespace {

// A ChannelMap for device code: its numbers have 32 bits, and a Divider divides by the number of
// groups.
struct Map {
  int in, first, last, shift, group;  // group: the number of channels in a group
  Divider groups;

  __device__ int source(int c) const {
    if (c < first || c >= last) return -1;
    if (groups.divisor == 1) return c + shift;
    const auto at = static_cast<int>(groups(static_cast<std::uint32_t>(c)));
    return (c - at * static_cast<int>(groups.divisor)) * group + at;
  }
};

// A thread writes V neighbouring elements, which may belong to several pixels. It reads them in
// words of W elements: W neighbouring output channels come from W neighbouring input channels.
template <typename T, int V, int W>
__global__ void copy_channels(const T* x, T* y, const __grid_constant__ Map map, Divider words,
                              std::int64_t items, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, y);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < items; i += stride) {
    const auto word = static_cast<std::uint32_t>(i * (V / W));
    const std::uint32_t row = words(word);
    const int channels = static_cast<int>(words.divisor) * W;
    int channel = static_cast<int>(word - row * words.divisor) * W;
    const T* from = x + std::int64_t{row} * map.in;
    Pack<T, V> pack = zero_pack<T, V>();
#pragma unroll
    for (int k = 0; k < V; k += W) {
      const int source = map.source(channel);
      if (source >= 0) {
        const Pack<T, W> part = load_pack<W>(from + source);
#pragma unroll
        for (int j = 0; j < W; ++j) pack.value[k + j] = part.value[j];
      }
      channel += W;
      if (channel == channels) channel = 0, from += map.in;
    }
    store_pack(y + i * V, pack);
  }
}

// Calls visit(packing, word width). A thread writes a pack of 16 bytes, in words of the greatest
// width that divides `together`. If y has no whole packs, packs and words are single elements.
template <typename T, typename Visit>
void with_words(std::int64_t elements, std::int64_t together, Visit visit) {
  constexpr int V = kPackWidth<T>;
  const auto words_of = [&]<int W>(auto& self, std::integral_constant<int, W> words) {
    if constexpr (W > 1)
      if (together % W != 0) return self(self, std::integral_constant<int, W / 2>{});
    visit(Packing<T, V>{}, words);
  };
  if (elements % V != 0) return visit(Packing<T, 1>{}, std::integral_constant<int, 1>{});
  words_of(words_of, std::integral_constant<int, V>{});
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
  // Output channels can be copied in words of w channels, for every w that divides this number.
  const std::int64_t together = map.groups > 1 ? 1
                                               : std::gcd(std::gcd(map.in, map.out),
                                                          std::gcd(std::gcd(map.first, map.last), map.shift));
  const auto body = [=, elements = y.shape.elements()](const BoundOperands& b, Stream stream) {
    const auto start = [&](auto packing, auto words) {
      using P = decltype(packing);
      using T = typename P::Type;
      const std::int64_t items = elements / P::kWidth;
      launch(copy_channels<T, P::kWidth, words()>, grid_for(items), kThreads, stream, b.members, b.in<T>(0),
             b.out<T>(0), on_device, Divider(map.out / words()), items);
    };
    type == DType::bf16 ? with_words<bf16>(elements, together, start)
                        : with_words<float>(elements, together, start);
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
