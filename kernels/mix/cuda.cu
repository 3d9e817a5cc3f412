// Mixes samples on the device. A thread computes one pack (16 bytes) of a pixel's channels.
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/divider.h"
#include "kernels/mix/mix.h"

namespace convoy::kernels::cuda {
namespace {

struct Images {
  Divider packs, columns, rows;  // divide by the packs of a pixel, the image's width and its height
  std::int64_t sample;           // the packs of a sample
  std::int64_t items;
};

template <typename T, int V>
__global__ void mix_packs(const T* x, const MixParameters* parameters, T* y, const StepControl* control,
                          const __grid_constant__ Images m, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, x, parameters, y, control);
  const MixParameters mix = *parameters;
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < m.items; i += turn) {
    const std::uint32_t pixel = m.packs(static_cast<std::uint32_t>(i)), line = m.columns(pixel);
    const std::uint32_t sample = m.rows(line);
    const auto row = line - sample * m.rows.divisor - static_cast<std::uint32_t>(mix.y);
    const auto column = pixel - line * m.columns.divisor - static_cast<std::uint32_t>(mix.x);
    const auto n = static_cast<std::int32_t>(sample);
    const bool cut =
        row < static_cast<std::uint32_t>(mix.height) && column < static_cast<std::uint32_t>(mix.width);
    if (n >= control->valid) {
      store_pack(y + i * V, zero_pack<T, V>());
      continue;
    }
    const T* own = x + i * V;
    const T* other = own + (mix_partner(n, control->valid) - n) * m.sample * V;
    if (cut || mix.pixel_share == 1) {
      store_pack(y + i * V, load_pack<V>(cut ? other : own));
      continue;
    }
    float a[V], b[V];
    unpack(load_pack<V>(own), a);
    unpack(load_pack<V>(other), b);
#pragma unroll
    for (int k = 0; k < V; ++k) a[k] = mix.pixel_share * a[k] + (1 - mix.pixel_share) * b[k];
    store_pack(y + i * V, pack_of<T>(a));
  }
}

}  // namespace

Kernel mix_forward(const MixProblem&, KernelRequest& request) {
  require_activation_layout("mix_forward", request.inputs[0]);
  check_mix(request);
  const Shape s = request.inputs[0].shape;
  const DType type = common_dtype("mix_forward", {&request.inputs[0]});
  require_below_2g("mix_forward", s.elements());
  const auto body = [=](const BoundOperands& b, Stream stream) {
    const StepControl* control = b.control();
    with_packing(type, {s[1]}, [&](auto packing) {
      using P = decltype(packing);
      using T = typename P::Type;
      const std::int64_t packs = s[1] / P::kWidth, items = s.elements() / P::kWidth;
      const Images m{Divider(packs), Divider(s[3]), Divider(s[2]), items / s[0], items};
      launch(mix_packs<T, P::kWidth>, grid_for(items), kThreads, stream, b.members, b.in<T>(0),
             b.in<MixParameters>(1), b.out<T>(0), control, m);
    });
  };
  return device_kernel(body);
}

}  // namespace convoy::kernels::cuda
