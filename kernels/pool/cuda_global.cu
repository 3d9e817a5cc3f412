// Averages whole images. A block computes some channels of one sample, and its threads divide the
// pixels among themselves.
#include "kernels/pool/cuda.cuh"

namespace convoy::kernels::cuda {
namespace {

constexpr int kMostTile = 32;  // the most packs of channels that a block averages

// A block averages `tile` packs of channels of a sample. kThreads / tile threads compute the same
// pack and divide the pixels among themselves.
template <typename T, int V>
__global__ void __launch_bounds__(kThreads) average(const T* x, T* y, int packs, int tile, int pixels,
                                                    std::int64_t samples, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, y);
  __shared__ float shared[kThreads * V];
  const int lanes = kThreads / tile, tx = static_cast<int>(threadIdx.x) % tile;
  const int lane = static_cast<int>(threadIdx.x) / tile, pack = static_cast<int>(blockIdx.x) * tile + tx;
  const bool active = lane < lanes && pack < packs;
  for (std::int64_t sample = blockIdx.y; sample < samples; sample += gridDim.y) {
    const T* image = x + (sample * pixels * packs + pack) * V;
    float sum[V] = {};
    if (active)
#pragma unroll 8
      for (int pixel = lane; pixel < pixels; pixel += lanes) {
        float value[V];
        unpack(load_pack<V>(image + std::int64_t{pixel} * packs * V), value);
#pragma unroll
        for (int i = 0; i < V; ++i) sum[i] += value[i];
      }
#pragma unroll
    for (int i = 0; i < V; ++i) shared[i * kThreads + threadIdx.x] = sum[i];
    __syncthreads();
    if (active && lane == 0) {
      for (int other = 1; other < lanes; ++other)
#pragma unroll
        for (int i = 0; i < V; ++i) sum[i] += shared[i * kThreads + other * tile + tx];
#pragma unroll
      for (int i = 0; i < V; ++i) sum[i] /= static_cast<float>(pixels);
      store_pack(y + (sample * packs + pack) * V, pack_of<T>(sum));
    }
    __syncthreads();
  }
}

template <typename T, int V>
__global__ void spread(const T* dy, T* dx, Divider packs, Divider pixels, std::int64_t items,
                       std::ptrdiff_t member_stride) {
  move_to_member(member_stride, dy, dx);
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  const float count = static_cast<float>(pixels.divisor);
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < items; item += turn) {
    const std::uint32_t pixel = packs(static_cast<std::uint32_t>(item)), sample = pixels(pixel);
    const std::uint32_t pack = static_cast<std::uint32_t>(item) - pixel * packs.divisor;
    float value[V];
    unpack(load_pack<V>(dy + (std::int64_t{sample} * packs.divisor + pack) * V), value);
#pragma unroll
    for (int i = 0; i < V; ++i) value[i] /= count;
    store_pack(dx + item * V, pack_of<T>(value));
  }
}

}  // namespace

void global_average_forward(DType type, const Shape& x, const BoundOperands& b, Stream stream) {
  with_packing(type, {x[1]}, [&](auto packing) {
    using P = decltype(packing);
    using T = typename P::Type;
    const auto packs = static_cast<int>(x[1] / P::kWidth);
    const int tile = std::min(packs, kMostTile);
    const dim3 grid(static_cast<unsigned>(ceil_div(packs, tile)),
                    static_cast<unsigned>(std::min<std::int64_t>(x[0], 65535)));
    launch(average<T, P::kWidth>, grid, kThreads, stream, b.members, b.in<T>(0), b.out<T>(0), packs, tile,
           static_cast<int>(x[2] * x[3]), x[0]);
  });
}

void global_average_backward(DType type, const Shape& x, const BoundOperands& b, Stream stream) {
  with_packing(type, {x[1]}, [&](auto packing) {
    using P = decltype(packing);
    using T = typename P::Type;
    const std::int64_t items = x.elements() / P::kWidth;
    launch(spread<T, P::kWidth>, grid_for(items), kThreads, stream, b.members, b.in<T>(0), b.out<T>(0),
           Divider(x[1] / P::kWidth), Divider(x[2] * x[3]), items);
  });
}

}  // namespace convoy::kernels::cuda
