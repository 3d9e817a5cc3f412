#include "kernels/conv2d/cuda/group_packing.h"
#include "kernels/device/cuda_launch.cuh"

namespace convoy::kernels::conv {
namespace {

template <typename T>
__global__ void pack_elements(const __grid_constant__ Geometry g, const PackedFilters layout,
                              const T* filters, T* to, const float* bias, float* bias_to, int elements,
                              std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, filters, to, bias, bias_to);
  const int c_group = g.c / g.groups, k_group = g.k / g.groups, taps = g.r * g.s;
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x) {
    const int inner = int(i) % layout.inner, line = int(i) / layout.inner, tap = line % taps,
              rows = line / taps;
    const int pack = rows / layout.rows, row = rows - pack * layout.rows;
    const int of_k = layout.transposed ? inner : row, of_c = layout.transposed ? row : inner;
    const int k = pack * layout.packing.k + of_k, c = pack * layout.packing.c + of_c, group = k / k_group;
    const bool there =
        of_k < layout.packing.k && of_c < layout.packing.c && group < g.groups && group == c / c_group;
    const int filter = layout.shared ? k - group * k_group : k;
    to[i] = there ? filters[(std::int64_t{filter} * taps + tap) * c_group + c - group * c_group] : T{};
    if (bias != nullptr && i < g.k) bias_to[i] = bias[layout.shared ? i % k_group : i];
  }
}

__global__ void unpack_elements(const __grid_constant__ Geometry g, const PackedFilters layout,
                                const float* packed, float* to, int elements, std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, packed, to);
  const int c_group = g.c / g.groups, k_group = g.k / g.groups, taps = g.r * g.s;
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x) {
    const int c = int(i) % c_group, line = int(i) / c_group, k = line / taps;
    const auto of_group = [&](int later) {
      const int group = (k + later * k_group) % layout.packing.k / k_group;
      return packed[(std::int64_t{line} + std::int64_t{later} * k_group * taps) * layout.inner +
                    group * c_group + c];
    };
    float sum = of_group(0);
    for (int later = 1; later < (layout.shared ? g.groups : 1); ++later) sum += of_group(later);
    to[i] = sum;
  }
}

}  // namespace

void pack_filters(const Geometry& g, const PackedFilters& layout, const void* filters, void* to,
                  const float* bias, float* bias_to, std::size_t element_bytes, Stream stream,
                  MemberLayout members) {
  const std::int64_t elements = layout.elements(g);
  const auto start = [&]<typename T>(T) {
    cuda::launch(pack_elements<T>, cuda::resident_grid(elements), cuda::kThreads, stream, members, g, layout,
                 static_cast<const T*>(filters), static_cast<T*>(to), bias, bias_to, int(elements));
  };
  element_bytes == 2 ? start(std::uint16_t{}) : start(std::uint32_t{});
}

void unpack_gradient(const Geometry& g, const PackedFilters& layout, const float* packed, float* to,
                     Stream stream, MemberLayout members) {
  const int filters = layout.shared ? g.k / g.groups : g.k;
  const std::int64_t elements = std::int64_t{filters} * g.taps() * (g.c / g.groups);
  cuda::launch(unpack_elements, cuda::resident_grid(elements), cuda::kThreads, stream, members, g, layout,
               packed, to, int(elements));
}

}  // namespace convoy::kernels::conv
