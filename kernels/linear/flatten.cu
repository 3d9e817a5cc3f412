#include "kernels/device/cuda_launch.cuh"
#include "kernels/linear/flatten.h"

namespace convoy::kernels::linear {
namespace {

template <typename T>
__global__ void transpose(const T* in, T* out, std::int64_t a, std::int64_t b, std::int64_t tiles_a,
                          std::int64_t tiles_b, std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, in, out);
  __shared__ T tile[32][33];
  const std::int64_t plane = blockIdx.x / (tiles_a * tiles_b), inside = blockIdx.x % (tiles_a * tiles_b);
  const std::int64_t a0 = inside / tiles_b * 32, b0 = inside % tiles_b * 32;
  const int x = threadIdx.x % 32, y = threadIdx.x / 32;
  in += plane * a * b;
  out += plane * a * b;
  for (int i = y; i < 32; i += 8)
    if (a0 + i < a && b0 + x < b) tile[i][x] = in[(a0 + i) * b + b0 + x];
  __syncthreads();
  for (int i = y; i < 32; i += 8)
    if (b0 + i < b && a0 + x < a) out[(b0 + i) * a + a0 + x] = tile[x][i];
}

}  // namespace

void transpose_planes(const void* in, void* out, std::int64_t planes, std::int64_t a, std::int64_t b,
                      std::size_t element_bytes, Stream stream, MemberLayout members) {
  const std::int64_t tiles_a = cuda::ceil_div(a, 32), tiles_b = cuda::ceil_div(b, 32);
  const auto launch = [&]<typename T>(T) {
    cuda::launch(transpose<T>, unsigned(planes * tiles_a * tiles_b), 256, stream, members,
                 static_cast<const T*>(in), static_cast<T*>(out), a, b, tiles_a, tiles_b);
  };
  element_bytes == 2 ? launch(std::uint16_t{}) : launch(std::uint32_t{});
}

}  // namespace convoy::kernels::linear
